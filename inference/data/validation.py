"""What must hold of samples before anything is fitted to them."""

from __future__ import annotations

import numpy as np
from torch import nn

from inference.data.multimodal import ModalityKind, MultimodalData

__all__ = ["validate"]

_DIMENSIONS: dict[ModalityKind, tuple[int, str]] = {
    "image": (4, "[sample, height, width, channel]"),
    "curve": (2, "[sample, position]"),
    "vector": (2, "[sample, element]"),
}


def validate(data: MultimodalData) -> None:
    """Refuse samples that cannot be fitted.

    That a sample is there in no modality at all is for the run to judge, which knows the guide.

    Raises:
        ValueError: Names and counts that do not agree, fewer than two samples, arrays of another shape or type than
            `MultimodalData` says, values that are not finite, a modality without any present sample, or one that is
            the same everywhere and so carries nothing.
    """
    _check_names(data)
    for name in data.modalities:
        _check_shape(name, data)
        _check_presence(name, data)
        _check_values(name, data.modalities[name][data.present[name]])
    for name in data.factors:
        _check_factor(name, data)
    for name, values in data.measurements.items():
        if np.shape(values) != (data.n_samples,):
            raise ValueError(
                f"{name}: expected one number per sample, [{data.n_samples}], got shape {np.shape(values)}"
            )


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


def _check_shape(name: str, data: MultimodalData) -> None:
    values, kind = data.modalities[name], data.kinds[name]
    if kind not in _DIMENSIONS:
        raise ValueError(f"{name}: expected the kind {', '.join(_DIMENSIONS)}, got {kind!r}")
    n_dimensions, form = _DIMENSIONS[kind]
    if values.dtype != np.float32 or values.ndim != n_dimensions or 0 in values.shape[1:]:
        raise ValueError(f"{name}: expected float32 {form} for kind {kind!r}, got {values.dtype} {values.shape}")
    first, n_samples = next((other, len(rows)) for other, rows in data.modalities.items())
    if len(values) != n_samples:
        raise ValueError(
            f"{name}: expected {n_samples} samples as {first!r} has, got {len(values)}; samples are aligned by "
            "position, so give a row of NaN for each that was not measured"
        )
    if n_samples < 2:
        raise ValueError(f"{name}: expected at least 2 samples, got {n_samples}; the first dimension counts them")


def _check_presence(name: str, data: MultimodalData) -> None:
    values, present = data.modalities[name], data.present[name]
    if present.dtype != np.bool_ or present.shape != values.shape[:1]:
        raise ValueError(f"{name}: expected present as bool [{len(values)}], got {present.dtype} {present.shape}")
    if not present.any():
        raise ValueError(f"{name}: expected at least one present sample, got none (all NaN); leave this modality out")
    if values[~present].any():
        raise ValueError(f"{name}: expected zeros in the rows of absent samples, got other values; set them to 0")


def _check_values(name: str, values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name}: expected finite values where present, got NaN or infinity; mark these samples as absent, "
            "or leave them out"
        )
    if values.min() == values.max():
        raise ValueError(
            f"{name}: expected values that vary, got {values.flat[0]:g} everywhere; leave this modality out"
        )


def _check_factor(name: str, data: MultimodalData) -> None:
    codes, levels = data.factors[name], data.factor_levels.get(name, ())
    if codes.dtype.kind not in "iu" or codes.shape != (data.n_samples,):
        raise ValueError(
            f"{name}: expected one integer code per sample, [{data.n_samples}], got {codes.dtype} {codes.shape}"
        )
    if codes.min() < 0 or codes.max() >= len(levels):
        raise ValueError(
            f"{name}: expected codes from 0 to {len(levels) - 1}, one per entry of factor_levels, "
            f"got {codes.min()} to {codes.max()}"
        )
