"""What must hold of samples before anything is fitted to them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import nn

from causalpima.inference.data.checks import check_finite, check_values
from causalpima.inference.data.multimodal import ModalityKind, MultimodalData
from causalpima.inference.data.roles import UNKNOWN
from causalpima.inference.data.stored import StoredArray

__all__ = [
    "check_environments",
    "check_truth",
    "validate",
]


# Checks of what is known beside the modalities: environments, and the distribution behind generated samples.


def check_environments(data: MultimodalData) -> None:
    """Refuse environments that do not fit the samples.

    Raises:
        ValueError: Codes that are not one per sample from 0 to the number of names, names that stand twice, or targets
            that are not known factors, one tuple per environment.
    """
    names = data.environment_names
    if data.environment is None:
        if names or data.environment_targets is not None:
            raise ValueError(f"environment: expected one code per sample, got none for the environments {names}")
        return
    _check_known_codes(data.environment, names, data.n_samples)
    if data.environment_targets is not None:
        _check_targets(data)


def _check_known_codes(codes: np.ndarray, names: tuple[str, ...], n_samples: int) -> None:
    if codes.dtype.kind not in "iu" or codes.shape != (n_samples,):
        raise ValueError(
            f"environment: expected one integer code per sample, [{n_samples}], got {codes.dtype} {codes.shape}"
        )
    if len(set(names)) != len(names):
        raise ValueError(f"environment_names: expected every name once, got {', '.join(names)}; rename the second")
    if codes.min() < 0 or codes.max() >= len(names):
        raise ValueError(
            f"environment: expected codes from 0 to {len(names) - 1}, one per name in environment_names, "
            f"got {codes.min()} to {codes.max()}"
        )


def _check_targets(data: MultimodalData) -> None:
    targets = data.environment_targets or ()
    if len(targets) != len(data.environment_names):
        raise ValueError(
            f"environment_targets: expected one tuple per environment, {len(data.environment_names)}, "
            f"got {len(targets)}; give () where nothing was intervened upon"
        )
    odd = sorted({name for group in targets for name in group} - set(data.factors))
    if odd:
        raise ValueError(f"environment_targets: expected names of factors, got {', '.join(odd)}")


def check_truth(data: MultimodalData) -> None:
    """Refuse a true distribution or graph that is none over the known factors.

    Raises:
        ValueError: A table of another shape, that is negative or does not sum to one, or an adjacency that is not
            `[L, L]` of 0 and 1.
    """
    shape = tuple(len(data.factor_levels[name]) for name in data.factors)
    joint, adjacency = data.true_joint, data.true_adjacency
    if joint is not None and joint.shape != shape:
        raise ValueError(f"true_joint: expected {shape}, one axis per factor, got {joint.shape}")
    if joint is not None and not ((joint >= 0).all() and np.isclose(joint.sum(), 1.0)):
        raise ValueError(f"true_joint: expected probabilities that sum to 1, got a sum of {joint.sum():g}")
    if adjacency is not None and adjacency.shape != (len(shape), len(shape)):
        raise ValueError(f"true_adjacency: expected {(len(shape), len(shape))}, got {adjacency.shape}")
    if adjacency is not None and not np.isin(adjacency, (0, 1)).all():
        raise ValueError("true_adjacency: expected 0 and 1, row = cause and column = effect, got other numbers")


_DIMENSIONS: dict[ModalityKind, tuple[int, str]] = {
    "image": (4, "[sample, height, width, channel]"),
    "curve": (2, "[sample, position]"),
    "vector": (2, "[sample, element]"),
}


def validate(data: MultimodalData, for_fitting: bool = True) -> None:
    """Refuse samples that cannot be fitted.

    That a sample is there in no modality at all is for the run to judge, which knows the guide.

    Args:
        data: The samples.
        for_fitting: Refuse also what is well formed, but what nothing can be learned from.

    Raises:
        ValueError: Names and counts that do not agree, fewer than two samples, arrays of another shape or type than
            `MultimodalData` says, a modality without any present sample, values that `check_values` refuses, or axes,
            groups, covariates, names, environments and truths that do not fit the samples.
    """
    _check_names(data)
    if for_fitting:
        _check_enough(data)
    for name in data.modalities:
        _check_shape(name, data)
        _check_presence(name, data)
        _check_content(name, data, for_fitting)
    for name in data.axes:
        _check_axis(name, data)
    for name in data.factors:
        _check_codes(name, data.factors[name], data.factor_levels, data.n_samples, lowest=UNKNOWN)
    for name in data.covariates:
        _check_codes(name, data.covariates[name], data.covariate_levels, data.n_samples)
    _check_samples(data)
    _check_text(data)
    check_environments(data)
    check_truth(data)


def _check_names(data: MultimodalData) -> None:
    if not data.modalities:
        raise ValueError(f"{data.name}: expected at least one modality, got none; give an array [sample, ...] by name")
    for name in data.modalities:
        if (
            not isinstance(name, str)
            or not name
            or not name.isprintable()
            or set(name) & set("./")
            or hasattr(nn.ModuleDict(), name)
        ):
            raise ValueError(
                f"{data.name}: expected printable names of modalities without '.' and '/' that are no attribute of a "
                f"torch module, got {name!r}; rename it"
            )
    for part in ("present", "kinds"):
        if set(getattr(data, part)) != set(data.modalities):
            raise ValueError(
                f"{part}: expected an entry for {sorted(data.modalities)}, the modalities of {data.name}, "
                f"got {sorted(getattr(data, part))}"
            )
    for part in ("observed", "axes", "units"):
        odd = sorted(set(getattr(data, part)) - set(data.modalities))
        if odd:
            raise ValueError(f"{part}: expected names of modalities of {data.name}, got {', '.join(map(repr, odd))}")


def _check_enough(data: MultimodalData) -> None:
    for name, values in data.modalities.items():
        if np.ndim(values) and len(values) < 2:
            raise ValueError(f"{name}: expected at least 2 samples, got {len(values)}; the first dimension counts them")
        if not np.any(data.present[name]):
            raise ValueError(
                f"{name}: expected at least one present sample, got none (all NaN); leave this modality out"
            )


def _check_shape(name: str, data: MultimodalData) -> None:
    values, kind = data.modalities[name], data.kinds[name]
    if kind not in _DIMENSIONS:
        raise ValueError(f"{name}: expected the kind {', '.join(_DIMENSIONS)}, got {kind!r}")
    n_dimensions, form = _DIMENSIONS[kind]
    if values.dtype not in (np.float32, np.float64) or values.ndim != n_dimensions or 0 in values.shape[1:]:
        raise ValueError(
            f"{name}: expected float32 or float64 {form} for kind {kind!r}, got {values.dtype} {values.shape}"
        )
    first, n_samples = next((other, len(rows)) for other, rows in data.modalities.items())
    if len(values) != n_samples:
        raise ValueError(
            f"{name}: expected {n_samples} samples as {first!r} has, got {len(values)}; samples are aligned by "
            "position, so give a row of NaN for each that was not measured"
        )


def _check_presence(name: str, data: MultimodalData) -> None:
    values, present = data.modalities[name], data.present[name]
    if present.dtype != np.bool_ or present.shape != values.shape[:1]:
        raise ValueError(f"{name}: expected present as bool [{len(values)}], got {present.dtype} {present.shape}")


def _check_content(name: str, data: MultimodalData, for_fitting: bool) -> None:
    values = data.modalities[name]
    if isinstance(values, StoredArray):
        values.scan.check(for_fitting)
        return
    _check_absent(name, data)
    _check_gaps(name, data)
    if for_fitting:
        check_values(name, values, data.measured(name), data.kinds[name] == "vector")
    else:
        check_finite(name, values)


def _check_absent(name: str, data: MultimodalData) -> None:
    if data.modalities[name][~data.present[name]].any():
        raise ValueError(f"{name}: expected zeros in the rows of absent samples, got other values; set them to 0")


def _check_gaps(name: str, data: MultimodalData) -> None:
    if name not in data.observed:
        return
    values, observed = data.modalities[name], data.observed[name]
    if observed.dtype != np.bool_ or observed.shape != values.shape:
        raise ValueError(f"{name}: expected observed as bool {values.shape}, got {observed.dtype} {observed.shape}")
    if not np.array_equal(observed.reshape(len(values), -1).any(1), data.present[name]):
        raise ValueError(f"{name}: expected observed elements in the present samples and in no others, got others")
    if values.any(where=~observed):
        raise ValueError(f"{name}: expected zeros where nothing was observed, got other values; set them to 0")


def _check_axis(name: str, data: MultimodalData) -> None:
    positions, shape = np.asarray(data.axes[name].values), data.modalities[name].shape
    if data.kinds[name] != "curve":
        raise ValueError(f"{name}: expected an axis for curves only, got one for kind {data.kinds[name]!r}")
    if positions.shape != shape[1:] or positions.dtype.kind not in "iuf":
        raise ValueError(
            f"{data.axes[name].name}: expected the positions of {name!r} as numbers [{shape[1]}], got "
            f"{positions.dtype} {positions.shape}"
        )
    if not np.isfinite(positions).all():
        raise ValueError(
            f"{data.axes[name].name}: expected finite positions of {name!r}, got NaN or infinity; leave these out"
        )


def _check_codes(
    name: str, codes: np.ndarray, all_levels: Mapping[str, tuple[str, ...]], n_samples: int, lowest: int = 0
) -> None:
    levels = all_levels.get(name, ())
    if codes.dtype.kind not in "iu" or codes.shape != (n_samples,):
        raise ValueError(
            f"{name}: expected one integer code per sample, [{n_samples}], got {codes.dtype} {codes.shape}"
        )
    if codes.min() < lowest or codes.max() >= len(levels):
        raise ValueError(
            f"{name}: expected codes from 0 to {len(levels) - 1}, one per entry of its levels, "
            f"got {codes.min()} to {codes.max()}"
        )


def _check_text(data: MultimodalData) -> None:
    """Refuse names with the character NUL, which no netCDF file of results can hold."""
    names = {"sample": () if data.sample_names is None else data.sample_names, "environment": data.environment_names}
    for key, texts in {**names, **data.factor_levels, **data.covariate_levels}.items():
        odd = next((text for text in texts if "\0" in text), None)
        if odd is not None:
            raise ValueError(f"{key}: expected names without the character NUL, got {str(odd)!r}; rename it")


def _check_samples(data: MultimodalData) -> None:
    """What has one entry per sample."""
    for name, values in data.measurements.items():
        if np.shape(values) != (data.n_samples,):
            raise ValueError(
                f"{name}: expected one number per sample, [{data.n_samples}], got shape {np.shape(values)}"
            )
    groups, names = data.groups, data.sample_names
    if groups is not None and (groups.dtype.kind not in "iu" or groups.shape != (data.n_samples,)):
        raise ValueError(
            f"groups: expected one integer code per sample, [{data.n_samples}], got {groups.dtype} {groups.shape}"
        )
    if names is not None and names.shape != (data.n_samples,):
        raise ValueError(f"sample: expected one name per sample, [{data.n_samples}], got shape {names.shape}")
