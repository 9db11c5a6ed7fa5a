"""A batch of samples, in the one form that model and guide take."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Batch",
    "Modality",
    "Standardisation",
    "Transform",
]


_FORBIDDEN = -1e10


@dataclass(frozen=True, eq=False)
class Batch:
    """Some of the samples of a data set.

    Attributes:
        values: Per modality `[batch, *shape]`; rows of absent samples hold finite filler.
        present: Per modality, bool `[batch]`, or None where every sample of the data set has the modality.
        index: Positions of the samples in the data set, `[batch]`.
        n_samples: Size of the whole data set, to which sums over the batch are scaled.
        observed: Per modality that lacks single elements, bool `[batch, *shape]`: which of them were measured; values
            elsewhere are finite filler. Modalities without an entry are complete wherever they are present.
        covariates: What decoders see next to Z, `[batch, V]`, or None.
        hidden: Per modality, bool `[batch]`: where encoders do not see it although it is present (dropped while
            training); decoders explain it all the same. Modalities without an entry are seen wherever present.
        cells: Cells that the labels of a sample leave possible, bool `[batch, C]`, where N is observed; else None.
        environment: Codes of the environments, int64 `[batch]`, 0 = without intervention; None: all are without.
    """

    values: Mapping[str, Tensor]
    present: Mapping[str, Tensor | None]
    index: Tensor
    n_samples: int
    observed: Mapping[str, Tensor] = field(default_factory=dict)
    covariates: Tensor | None = None
    hidden: Mapping[str, Tensor] = field(default_factory=dict)
    cells: Tensor | None = None
    environment: Tensor | None = None

    @classmethod
    def whole(cls, values: Mapping[str, Tensor], present: Mapping[str, Tensor | None] | None = None) -> Batch:
        """All samples of a data set as one batch.

        Args:
            values: Per modality `[sample, *shape]`.
            present: Per modality, bool `[sample]` or None (default: every modality is complete).
        """
        first = next(iter(values.values()))
        n = len(first)
        return cls(values, present or dict.fromkeys(values), torch.arange(n, device=first.device), n)

    def __len__(self) -> int:
        return len(self.index)

    def at(self, rows: Tensor) -> Batch:
        """Some of the samples, as a data set of their own; drops `hidden`."""
        return Batch(
            {name: value[rows] for name, value in self.values.items()},
            {name: None if mask is None else mask[rows] for name, mask in self.present.items()},
            torch.arange(len(rows), device=rows.device),
            len(rows),
            {name: mask[rows] for name, mask in self.observed.items()},
            None if self.covariates is None else self.covariates[rows],
            cells=None if self.cells is None else self.cells[rows],
            environment=None if self.environment is None else self.environment[rows],
        )

    def without(self, name: str) -> Batch:
        """The samples as if none had this modality."""
        return dataclasses.replace(self, present={**self.present, name: torch.zeros_like(self.has(name))})

    def repeated(self, times: int) -> Batch:
        """The samples one after the other, then all of them again, `[times * batch]` in all; drops `hidden`."""

        def repeat(value: Tensor) -> Tensor:
            return value.repeat(times, *[1] * (value.dim() - 1))

        return Batch(
            {name: repeat(value) for name, value in self.values.items()},
            {name: None if mask is None else repeat(mask) for name, mask in self.present.items()},
            repeat(self.index),
            self.n_samples,
            {name: repeat(mask) for name, mask in self.observed.items()},
            None if self.covariates is None else repeat(self.covariates),
            cells=None if self.cells is None else repeat(self.cells),
            environment=None if self.environment is None else repeat(self.environment),
        )

    def log_allowed(self, like: Tensor) -> Tensor | None:
        """log 1[cell is possible], `[batch, C]` of the type of `like`; None where no N is observed.

        Finite, so that zero times it is zero; low enough that its exponential is zero beside any log-likelihood.
        """
        return None if self.cells is None else torch.where(self.cells, 0.0, _FORBIDDEN).to(like)

    def has(self, name: str) -> Tensor:
        """Which samples have a modality, bool `[batch]`."""
        present = self.present[name]
        return torch.ones_like(self.index, dtype=torch.bool) if present is None else present

    def measured(self, name: str) -> Tensor:
        """One where an element was measured, else zero, of the type of the values, `[batch, *shape]`."""
        value = self.values[name]
        rows = self.has(name).to(value).reshape(-1, *[1] * (value.dim() - 1))
        return rows.expand(value.shape) if name not in self.observed else rows * self.observed[name]

    def seen(self, name: str) -> Tensor | None:
        """Where encoders see a modality, bool `[batch]`; None: everywhere."""
        present = self.present[name]
        if name not in self.hidden:
            return present
        return ~self.hidden[name] if present is None else present & ~self.hidden[name]

    def n_elements(self, name: str) -> Tensor:
        """Number of measured elements of a modality in the batch, a scalar of the values' type."""
        value = self.values[name]
        if name in self.observed:
            return self.observed[name][self.has(name)].sum().to(value)
        return (self.has(name).sum() * value[0].numel()).to(value)


# The scale on which a modality is modelled, and the way back to the units of the data.


Transform = Literal["identity", "log", "asinh"]


@dataclass(frozen=True)
class Standardisation:
    r"""`y = (T(x) - loc) / scale`, one transform, mean and standard deviation for all elements of a modality.

    `identity`: T(x) = x - offset. `log`: T(x) = log x, for positive values over decades. `asinh`: T(x) =
    asinh(x / knee), linear below the knee and logarithmic above it, for values over decades that touch zero.

    Attributes:
        loc: Mean of T(x), in the transformed unit.
        scale: Standard deviation of T(x), in the transformed unit; 1 if it is not standardised.
        transform: T.
        knee: Where `asinh` turns from linear to logarithmic, in the unit of the data.
        offset: What float64 values have subtracted, in the unit of the data, before anything else: a number where
            float32 cannot hold them (0 under other transforms), and all that is in their unit is float64 then; None
            where it can.
    """

    loc: float = 0.0
    scale: float = 1.0
    transform: Transform = "identity"
    knee: float = 1.0
    offset: float | None = None

    @property
    def dtype(self) -> Literal["float32", "float64"]:
        """The type that holds values in the unit of the data."""
        return "float32" if self.offset is None else "float64"

    def apply(self, value: Any) -> Any:
        """To the scale of the model; a tensor or an array, any shape."""
        return (self.transformed(value) - self.loc) / self.scale

    def invert(self, standardised: Any) -> Any:
        """To the unit of the data; a tensor or an array, any shape."""
        library, found = _library(standardised), self._double(standardised) * self.scale + self.loc
        if self.transform == "log":
            return library.exp(found)
        return self.knee * library.sinh(found) if self.transform == "asinh" else self.moved_back(found)

    def moved_back(self, value: Any) -> Any:
        """With the offset; a tensor or an array, any shape."""
        return value if self.offset is None else self._double(value) + self.offset

    def _double(self, value: Any) -> Any:
        if self.offset is None:
            return value
        return value.double() if isinstance(value, Tensor) else np.asarray(value, dtype=np.float64)

    def transformed(self, value: Any) -> Any:
        """T(x)."""
        if self.transform == "log":
            return _library(value).log(value)
        if self.transform == "asinh":
            return _library(value).arcsinh(value / self.knee)
        return value if self.offset is None else value - self.offset

    def log_derivative(self, value: Any) -> Any:
        """log |dy / dx| of every element: what a log-density of y lacks to be one of x."""
        library = _library(value)
        log_scale = float(np.log(self.scale))
        if self.transform == "log":
            return -library.log(value) - log_scale
        if self.transform == "asinh":
            return -0.5 * library.log(value * value + self.knee**2) - log_scale
        return library.zeros_like(value) - log_scale


def _library(value: Any) -> Any:
    return torch if isinstance(value, Tensor) else np


# What encoders and decoders need to know of a modality.


@dataclass(frozen=True, eq=False)
class Modality:
    """One kind of measurement, as the networks meet it.

    Attributes:
        name: Its name.
        event_shape: Shape of one sample.
        kind: `image` ([height, width, channel]), `curve` ([position]) or `vector`.
        positions: Positions of the elements of a curve `[D]`, float64, in `position_unit`; None for other kinds.
        position_name: Name of the positions, for example `strain`.
        position_unit: Unit of the positions; empty if it has none.
        unit: Unit of the values; empty if they have none.
        standardisation: Between the unit of the values and the scale that is modelled.
        has_gaps: Whether single elements are missing in some samples.
        n_categories: Number of categories of categorical elements, coded from 0; 1 for all else.
        mean: Mean of the measured training values, on the scale of the model.
        dimensions: Names of the dimensions of one sample, where the data had names; the one channel of images without
            channels in the data has none.
        source_dimensions: The same names in the order of the data.
        coordinates: Places along dimensions, by their name: numbers or names.
    """

    name: str
    event_shape: torch.Size
    kind: str = "vector"
    positions: Tensor | None = None
    position_name: str = ""
    position_unit: str = ""
    unit: str = ""
    standardisation: Standardisation = field(default_factory=Standardisation)
    has_gaps: bool = False
    n_categories: int = 1
    mean: float = 0.0
    dimensions: tuple[str, ...] = ()
    source_dimensions: tuple[str, ...] = ()
    coordinates: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
