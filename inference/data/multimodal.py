"""Samples measured in several ways: the one form in which data reach training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

__all__ = [
    "MASK_SUFFIX",
    "Axis",
    "Dimensions",
    "ModalityKind",
    "MultimodalData",
    "Variable",
    "check_mask_shape",
    "measured_elements",
    "sample_subset",
]


ModalityKind = Literal["image", "curve", "vector"]


@dataclass(frozen=True)
class Axis:
    """The positions at which a curve was measured.

    Attributes:
        name: For example `strain`.
        values: `[position]`, in `unit`.
        unit: Empty if there is none.
    """

    name: str
    values: np.ndarray
    unit: str = ""


@dataclass(frozen=True)
class Dimensions:
    """Names of the dimensions of one sample of a modality, where its source has names.

    Attributes:
        names: In the order of the values; of images without channels in the source, the one channel has no name.
        source: The same names in the order of the source.
        coordinates: Per dimension that has some, its places: numbers or names; the positions of a curve are its axis.
    """

    names: tuple[str, ...]
    source: tuple[str, ...]
    coordinates: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class MultimodalData:
    """Aligned modalities with a presence mask, and the factors known about them.

    Attributes:
        name: Name of the data set, as it appears in reports.
        modalities: Per modality, values `[sample, *shape]` in float32, or in float64 where float32 loses what they
            vary by. Rows of absent samples hold zeros.
        present: Per modality, bool `[sample]`: was this sample measured in this way?
        kinds: Per modality, how it is shown: `image` is `[height, width, channel]`, `curve` is
            `[position]`, `vector` has no order.
        factors: Known categorical factors, integer codes `[sample]`, -1 where a sample has no label. Used for
            evaluation only, unless a configuration observes them.
        scored: Names of the factors that a fit is scored against; none: all of them.
        factor_levels: Names of the levels of each factor, in the order of the codes.
        measurements: Known continuous quantities `[sample]` (for example the radius behind a circle).
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier on these samples, where known.
        observed: Per modality that lacks single elements, bool `[sample, *shape]`: which of them were measured; values
            elsewhere are zeros. Modalities without an entry are complete wherever they are present.
        axes: Per curve, its positions; curves without an entry are numbered.
        units: Per modality, the unit of its values; those without an entry have none.
        dimensions: Per modality, the names of its dimensions; those without an entry have none.
        groups: Codes `[sample]` of specimens or batches whose samples stay on one side of every split, or None.
        covariates: Categorical nuisances (batch, instrument), integer codes `[sample]`, that decoders see.
        covariate_levels: Names of the levels of each covariate, in the order of the codes.
        sample_names: Names of the samples `[sample]` of str, or None.
        environment: Code `[sample]` of the environment in which each sample was taken, 0 = observational, or None where
            all are observational.
        environment_names: Names of the environments, in the order of the codes.
        environment_targets: Per environment, the factors that were intervened upon (none for code 0), or None where
            that is not known. Used for evaluation only.
        true_joint: p(factors) of the observational environment, `[levels of the first factor, ..., of the last]`, or
            None where it is not known. Used for evaluation only, as is the graph:
        true_adjacency: The true DAG over the factors, `[L, L]` of 0 and 1 in the order of `factors`, row = cause and
            column = effect; or None.
        notes: What of the source may not be what it seems; one line each.
    """

    name: str
    modalities: Mapping[str, np.ndarray]
    present: Mapping[str, np.ndarray]
    kinds: Mapping[str, ModalityKind]
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    factor_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    scored: tuple[str, ...] = ()
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)
    bayes_ceiling: float | None = None
    observed: Mapping[str, np.ndarray] = field(default_factory=dict)
    axes: Mapping[str, Axis] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, Dimensions] = field(default_factory=dict)
    groups: np.ndarray | None = None
    covariates: Mapping[str, np.ndarray] = field(default_factory=dict)
    covariate_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sample_names: np.ndarray | None = None
    environment: np.ndarray | None = None
    environment_names: tuple[str, ...] = ()
    environment_targets: tuple[tuple[str, ...], ...] | None = None
    true_joint: np.ndarray | None = None
    true_adjacency: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.present.values())))

    def measured(self, name: str) -> np.ndarray:
        """Which elements of a modality were measured, bool `[sample, *shape]` (a view where there are no gaps)."""
        if name in self.observed:
            return self.observed[name]
        values, present = self.modalities[name], self.present[name]
        return np.broadcast_to(present.reshape(-1, *[1] * (values.ndim - 1)), values.shape)

    def measured_rows(self, name: str, rows: slice | np.ndarray) -> np.ndarray:
        """The same for some of the samples, of which alone masks are read from disk."""
        if name in self.observed:
            return self.observed[name][rows]
        values, present = self.modalities[name], self.present[name][rows]
        return np.broadcast_to(present.reshape(-1, *[1] * (values.ndim - 1)), (len(present), *values.shape[1:]))

    def axis(self, name: str) -> Axis:
        """The positions of a curve; numbered from 0 where none are known."""
        return self.axes.get(name) or Axis("position", np.arange(self.modalities[name].shape[1], dtype=np.float64))


# A variable as it was read, whatever it was read from.


MASK_SUFFIX = "_mask"


@dataclass(frozen=True)
class Variable:
    """Values with what is known about them.

    Attributes:
        values: What NumPy or torch takes for an array, samples first.
        role: `modality`, `label`, `group`, `covariate` or `environment`, where the source says so.
        kind: `image`, `curve` or `vector`, where the source says so.
        unit: Unit of the values; empty if there is none.
        axis: The positions of a curve, where the source has them.
        dimensions: Names of the dimensions of one sample, where the source has them, in the order of the values.
    """

    values: Any
    role: str | None = None
    kind: str | None = None
    unit: str = ""
    axis: Axis | None = None
    dimensions: Dimensions | None = None


# Which elements of an array were measured: those that are no NaN and that no mask takes out.


def measured_elements(name: str, values: np.ndarray, mask: Any = None) -> np.ndarray:
    """Bool, of the shape of the values.

    Args:
        name: Name of the values, for messages; that of the mask is `NAME_mask`.
        values: Real numbers `[sample, ...]`.
        mask: Bool or 0 and 1, true where measured, `[sample]` or of the shape of the values; None: NaN alone counts.

    Raises:
        ValueError: A mask of another shape, or with other values.
    """
    measured = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, dtype=bool)
    if mask is None:
        return measured
    check_mask_shape(name, np.shape(mask), values.shape)
    flags = _flags(name + MASK_SUFFIX, np.asarray(mask))
    return measured & flags.reshape(flags.shape + (1,) * (values.ndim - flags.ndim))


def check_mask_shape(name: str, mask: tuple[int, ...], values: tuple[int, ...]) -> None:
    """Refuse a mask that is of neither shape that it may have.

    Args:
        name: Name of the values.
        mask: Shape of the mask.
        values: Shape of the values.

    Raises:
        ValueError: It is of another.
    """
    if mask not in (values, values[:1]):
        raise ValueError(
            f"{name + MASK_SUFFIX}: expected the shape {values[:1]} or {values} for the mask of {name!r}, got {mask}; "
            "give one value per sample, or one per element"
        )


def _flags(name: str, mask: np.ndarray) -> np.ndarray:
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        got = f"type {mask.dtype}" if mask.dtype.kind not in "biuf" else "other values"
        raise ValueError(f"{name}: expected 1 (measured) and 0 (missing) only, or bool, got {got}")
    return mask.astype(bool)


# Some of the samples, as data of their own.


def sample_subset(data: MultimodalData, index: np.ndarray) -> MultimodalData:
    """The same data of these samples alone; levels keep their codes. Values that are on disk are read.

    Args:
        data: All samples.
        index: Positions, in the order in which they are wanted.
    """

    def of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.asarray(values[index]) for name, values in arrays.items()}

    def row(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[index]

    return replace(
        data,
        modalities=of(data.modalities),
        present=of(data.present),
        observed=of(data.observed),
        factors=of(data.factors),
        measurements=of(data.measurements),
        covariates=of(data.covariates),
        groups=row(data.groups),
        sample_names=row(data.sample_names),
        environment=row(data.environment),
    )
