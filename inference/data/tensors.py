"""Data as tensors on a device: standardisation and batches."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.stored import (
    StoredArray,
    StoredRows,
    loaded_rows,
    row_blocks,
    standardised,
    stored_observed,
    stored_values,
    windows,
)
from causalpima.models.batch import Batch, Standardisation, Transform

__all__ = [
    "Scale",
    "TensorData",
    "fingerprint",
    "fit_standardisation",
    "in_order",
    "log_jacobian",
    "split_samples",
    "to_tensors",
    "weighted_means",
]


# The standardisation of a modality, fitted to the measured elements of the training samples.


_KNEE_QUANTILE = 0.1
_OFFSET_UNIT = 3  # as a power of two, in ranges of the values
_SAMPLE_BYTES = 2**27
_GAUSSIAN_RATIO = 1.4826  # standard deviation of a Gaussian over its median absolute deviation


@dataclass(frozen=True)
class Scale:
    """How a modality is to be scaled.

    Attributes:
        standardise: Subtract the mean and divide by the standard deviation of all elements, after the transform.
        transform: Transform of the values before that.
        knee: Of the `asinh`, in the unit of the data; 0: the 10 % quantile of the sizes of the values.
        robust: Median and 1.4826 times the median distance from it, instead of mean and standard deviation, which a
            single outlier can move anywhere.
        has_offset: Whether an offset may be subtracted; not where values are counts or codes.
    """

    standardise: bool = True
    transform: Transform = "identity"
    knee: float = 0.0
    robust: bool = False
    has_offset: bool = True


def fit_standardisation(data: MultimodalData, name: str, training: np.ndarray, scale: Scale) -> Standardisation:
    """Standardisation of a modality from its training samples (paper: none is stated; docs/errata.md item 20).

    Values that are held in float64, since float32 loses what they vary by, get an offset: the middle of their range, as
    a multiple of a power of two that is eight ranges or more. Subtracting it rounds nothing, and data that differ by
    such a multiple are the same data.

    Args:
        data: The samples.
        name: The modality.
        training: Bool `[sample]`, which samples may be used.
        scale: How to scale.

    Raises:
        ValueError: A logarithm is asked for of values that are not positive.
    """
    _check_domain(data, name, scale)
    offset = _offset(data, name, training, scale)
    shape = Standardisation(transform=scale.transform, knee=_knee(data, name, training, scale), offset=offset)
    if not scale.standardise:
        return shape
    if scale.robust:
        centre, spread = _robust_moments(shape.transformed(_sample(data, name, training)))
    else:
        centre, spread = _moments(lambda: map(shape.transformed, _measured_blocks(data, name, training)))
    return dataclasses.replace(shape, loc=centre, scale=spread or 1.0)


def _offset(data: MultimodalData, name: str, training: np.ndarray, scale: Scale) -> float | None:
    if data.modalities[name].dtype == np.float32:
        return None
    parts = [(part.min(), part.max()) for part in _measured_blocks(data, name, training) if part.size]
    if not parts or scale.transform != "identity" or not scale.has_offset:
        return 0.0
    low, high = float(min(low for low, _ in parts)), float(max(high for _, high in parts))
    unit = 2.0 ** (math.frexp(high - low)[1] + _OFFSET_UNIT)
    return round((low + (high - low) / 2) / unit) * unit if high > low else low


def _measured_blocks(data: MultimodalData, name: str, samples: np.ndarray) -> Iterator[np.ndarray]:
    """Measured values of some of the samples, in float64, some MiB at a time."""
    values, chosen = data.modalities[name], samples & data.present[name]
    for rows in row_blocks(len(values), values.nbytes // len(values)):
        measured = data.measured_rows(name, rows) & chosen[rows].reshape(-1, *[1] * (values.ndim - 1))
        yield values[rows][measured].astype(np.float64)


def _sample(data: MultimodalData, name: str, training: np.ndarray) -> np.ndarray:
    """Measured training values for quantiles: all of them, or of at most some MiB of samples, evenly spread."""
    rows = np.flatnonzero(training & data.present[name])
    most = max(1, _SAMPLE_BYTES // max(data.modalities[name].nbytes // len(training), 1))
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))] if len(rows) else rows
    values = data.modalities[name][kept].astype(np.float64)
    return values[data.measured_rows(name, kept)]


def _check_domain(data: MultimodalData, name: str, scale: Scale) -> None:
    if scale.transform != "log":
        return
    everything = np.ones(data.n_samples, dtype=bool)
    smallest = min((float(x.min()) for x in _measured_blocks(data, name, everything) if x.size), default=np.inf)
    if smallest <= 0:
        raise ValueError(
            f"modality.{name}.transform: expected positive values for log, got {smallest:g}; use asinh, which "
            "takes all values"
        )


def _moments(blocks: Callable[[], Iterator[np.ndarray]]) -> tuple[float, float]:
    """Mean and standard deviation in two passes over blocks of values; the latter is exactly 0 if all are equal."""
    parts = [(part.size, part.sum(), part.min(), part.max()) for part in blocks() if part.size]
    if not parts:
        return 0.0, 0.0
    count, total, lowest, highest = zip(*parts, strict=True)
    mean = float(sum(total) / sum(count))
    squares = sum(float(np.square(part - mean).sum()) for part in blocks())
    return mean, math.sqrt(squares / sum(count)) if min(lowest) < max(highest) else 0.0


def _robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Median, and the standard deviation of a Gaussian with the same median distance from it.

    The standard deviation itself where more than half of the values are equal.
    """
    if not values.size:
        return 0.0, 0.0
    centre = np.median(values)
    return float(centre), float(_GAUSSIAN_RATIO * np.median(np.abs(values - centre))) or float(values.std())


def _knee(data: MultimodalData, name: str, training: np.ndarray, scale: Scale) -> float:
    if scale.transform != "asinh" or scale.knee > 0:
        return scale.knee or 1.0
    sizes = np.abs(_sample(data, name, training))
    knee = float(np.quantile(sizes, _KNEE_QUANTILE)) if sizes.size else 0.0
    return knee or float(sizes.max(initial=0.0)) or 1.0


_WINDOW_BYTES = 2**26
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class TensorData:
    """Samples on a device, standardised.

    Attributes:
        values: Per modality `[sample, *shape]`, in memory or on disk; zeros where nothing was measured.
        present: Per modality, bool `[sample]`, or None where the modality is complete.
        standardisation: Per modality, between the units of the data and the scale of the model.
        observed: Per modality that lacks single elements, bool `[sample, *shape]`: those measured.
        covariates: Indicators of the levels of all covariates, `[sample, V]`, or None.
        cells: Cells that the labels of each sample leave possible, bool `[sample, C]`, where N is observed; else None.
        environment: Codes of the environments, int64 `[sample]`, 0 = without intervention, or None.
        environment_names: What they are called, in the order of the codes.
    """

    values: Mapping[str, Tensor | StoredRows]
    present: Mapping[str, Tensor | None]
    standardisation: Mapping[str, Standardisation]
    observed: Mapping[str, Tensor | StoredRows] = field(default_factory=dict)
    covariates: Tensor | None = None
    cells: Tensor | None = None
    environment: Tensor | None = None
    environment_names: tuple[str, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.values.values())))

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return next(iter(self.values.values())).device

    @property
    def n_bytes_per_sample(self) -> int:
        """Bytes of the values of one sample."""
        return sum(4 * math.prod(value.shape[1:]) for value in self.values.values())

    @property
    def n_bytes(self) -> int:
        """Bytes of the values that are in memory: all, or a window of those on disk."""
        everything = self.n_samples * self.n_bytes_per_sample
        return min(everything, _WINDOW_BYTES) if self._stored else everything

    @cached_property
    def n_elements(self) -> Mapping[str, int]:
        """Number of measured elements of every modality; of masks on disk, one pass."""
        return {name: self._count(name) for name in self.values}

    def _count(self, name: str) -> int:
        if name in self.observed:
            parts = torch.arange(self.n_samples, device=self.device).split(_ROWS_AT_ONCE)
            return sum(int(self.observed[name][rows].sum()) for rows in parts)
        present = self.present[name]
        n_present = self.n_samples if present is None else int(present.sum())
        return n_present * math.prod(self.values[name].shape[1:])

    def log_jacobian(self, name: str, batch: Batch) -> Tensor:
        """What log-densities lack to be in the units of the data; see the function `log_jacobian`."""
        return log_jacobian(self.standardisation[name], name, batch)

    def subset(self, index: np.ndarray) -> TensorData:
        """The samples at these positions."""
        rows = torch.as_tensor(index, device=self.device)
        places = self._stored[0].rows[index] if self._stored else index

        def chosen(column: Tensor | StoredRows) -> Tensor | StoredRows:
            return column.at(places) if isinstance(column, StoredRows) else column[rows]

        return TensorData(
            {name: chosen(value) for name, value in self.values.items()},
            {name: None if mask is None else mask[rows] for name, mask in self.present.items()},
            self.standardisation,
            {name: chosen(mask) for name, mask in self.observed.items()},
            None if self.covariates is None else self.covariates[rows],
            None if self.cells is None else self.cells[rows],
            None if self.environment is None else self.environment[rows],
            self.environment_names,
        )

    def batch(self, index: Tensor) -> Batch:
        """The samples at these positions as a batch of this data set."""
        return Batch(
            {name: value[index] for name, value in self.values.items()},
            {name: None if mask is None else mask[index] for name, mask in self.present.items()},
            index,
            self.n_samples,
            {name: mask[index] for name, mask in self.observed.items()},
            None if self.covariates is None else self.covariates[index],
            cells=None if self.cells is None else self.cells[index],
            environment=None if self.environment is None else self.environment[index],
        )

    def batches(self, size: int, shuffle: bool = False) -> Iterator[Batch]:
        """All samples, `size` at a time; shuffled by torch's global generator on the CPU.

        Shuffled samples on disk are read in windows of some tens of MiB, each of neighbouring samples from places that
        are drawn at random, since single rows are slow to read.
        """
        if shuffle and self._stored:
            yield from self._batches_of_windows(size)
            return
        order = torch.randperm(self.n_samples) if shuffle else torch.arange(self.n_samples)
        yield from (self.batch(rows) for rows in order.to(self.device).split(size))

    def _batches_of_windows(self, size: int) -> Iterator[Batch]:
        per_row = sum(column.bytes_per_row for column in self._stored)
        for window in windows(self.n_samples, size, max(1, _WINDOW_BYTES // per_row)):
            increasing, order = window.sort()
            place = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
            loaded = self._loaded(increasing.numpy())
            for rows, there in zip(window.split(size), place.split(size), strict=True):
                batch = loaded.batch(there.to(self.device))
                yield dataclasses.replace(batch, index=rows.to(self.device), n_samples=self.n_samples)
            del loaded, batch  # else there are two windows while the next one is read

    @property
    def _stored(self) -> list[StoredRows]:
        columns = [*self.values.values(), *self.observed.values()]
        return [column for column in columns if isinstance(column, StoredRows)]

    def _loaded(self, index: np.ndarray) -> TensorData:
        """Samples at increasing positions, in memory."""
        part = self.subset(index)
        found = iter(loaded_rows(part._stored, np.arange(len(index))))

        def filled(columns: Mapping[str, Tensor | StoredRows]) -> dict[str, Tensor | StoredRows]:
            return {name: next(found) if isinstance(c, StoredRows) else c for name, c in columns.items()}

        return dataclasses.replace(part, values=filled(part.values), observed=filled(part.observed))


def to_tensors(
    data: MultimodalData, training: np.ndarray, scales: Mapping[str, Scale], device: torch.device
) -> TensorData:
    """Move data to a device, on the scale that is fitted to the training samples.

    Args:
        data: The samples.
        training: Bool `[sample]`, whose measured elements give mean and standard deviation.
        scales: Per modality, how to standardise.
        device: Where the tensors go.

    Raises:
        ValueError: A logarithm is asked for of values that are not positive.
    """
    standardisation = {name: fit_standardisation(data, name, training, scales[name]) for name in data.modalities}
    rows = np.arange(data.n_samples)
    return TensorData(
        {name: _values(data, name, standardisation[name], rows, device) for name in data.modalities},
        {name: None if mask.all() else _tensor(mask).to(device) for name, mask in data.present.items()},
        standardisation,
        {name: _observed(mask, rows, device) for name, mask in data.observed.items()},
        _covariates(data, device),
        environment=None if data.environment is None else _tensor(data.environment.astype(np.int64)).to(device),
        environment_names=data.environment_names,
    )


def log_jacobian(standardisation: Standardisation, name: str, batch: Batch) -> Tensor:
    """Σ log |dy / dx| over the measured elements of a modality, `[B]`; zero where it is absent."""
    value, present = batch.values[name], batch.present[name]
    terms = standardisation.log_derivative(standardisation.invert(value))
    if name in batch.observed:
        terms = torch.where(batch.observed[name], terms, 0.0)
    total = terms.flatten(1).sum(1)
    return total if present is None else torch.where(present, total, 0.0)


def _values(
    data: MultimodalData, name: str, standardisation: Standardisation, rows: np.ndarray, device: torch.device
) -> Tensor | StoredRows:
    if isinstance(data.modalities[name], StoredArray):
        return stored_values(data, name, standardisation, rows, device)
    return standardised(data.modalities[name], data.measured(name), standardisation).to(device)


def _observed(mask: np.ndarray | StoredArray, rows: np.ndarray, device: torch.device) -> Tensor | StoredRows:
    return stored_observed(mask, rows, device) if isinstance(mask, StoredArray) else _tensor(mask).to(device)


def _covariates(data: MultimodalData, device: torch.device) -> Tensor | None:
    if not data.covariates:
        return None
    blocks = [np.eye(len(data.covariate_levels[name]))[codes] for name, codes in data.covariates.items()]
    return torch.from_numpy(np.concatenate(blocks, axis=1).astype(np.float32)).to(device)


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def fingerprint(data: MultimodalData) -> str:
    """Hash of what a fit depends on: modalities, what is said of them, covariates, groups, environments, and factors.

    Factors choose the split, positions and units are those of laws and of all that is reported.
    """
    digest = hashlib.sha256()
    for name, values in data.modalities.items():
        digest.update(f"{name} {values.dtype} {values.shape}\n".encode())
        for rows in _blocks(values):
            digest.update(np.ascontiguousarray(values[rows]).data)
        digest.update(np.packbits(data.present[name]).tobytes())
        if name in data.observed:
            for rows in _blocks(values):
                digest.update(np.packbits(data.observed[name][rows]).tobytes())
    for text, numbers in _said(data):
        digest.update(f"{text}\n".encode())
        digest.update(np.ascontiguousarray(numbers).tobytes())
    return digest.hexdigest()


def _said(data: MultimodalData) -> Iterator[tuple[str, np.ndarray]]:
    """What is said of modalities and samples, as texts and numbers."""
    for name in data.modalities:
        yield f"{data.kinds.get(name)} {data.units.get(name, '')}", np.empty(0)
    for name, axis in data.axes.items():
        yield f"axis {name} {axis.name} {axis.unit}", np.asarray(axis.values, dtype=np.float64)
    for name, codes in data.covariates.items():
        yield f"covariate {name} {data.covariate_levels[name]}", codes.astype(np.int64)
    for name, codes in data.factors.items():
        yield f"factor {name} {data.factor_levels[name]}", codes.astype(np.int64)
    if data.groups is not None:
        yield "groups", data.groups.astype(np.int64)
    if data.environment is not None:
        yield f"environment {data.environment_names}", data.environment.astype(np.int64)


def _blocks(values: np.ndarray | StoredArray) -> Iterator[slice]:
    return row_blocks(len(values), values.nbytes // max(len(values), 1))


# Training, validation and test samples: stratified by the known factors, with groups kept whole.


def split_samples(
    n_samples: int,
    validation_fraction: float,
    seed: int,
    test_fraction: float = 0.0,
    factors: Mapping[str, np.ndarray] | None = None,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """`train`, `validation` or `test` per sample, `[n]` of str.

    Whole groups are drawn systematically from a list that is sorted by the combination of the known factors and
    shuffled within: every combination gives its share of groups. At least one group stays for training. Fractions are
    of groups, which are samples where there are none.

    Args:
        n_samples: Number of samples.
        validation_fraction: Share of the groups for validation, in [0, 1).
        seed: Seed of the shuffling.
        test_fraction: Share of the groups for the test, in [0, 1).
        factors: Known factors, integer codes `[n]` each; they choose no parameter, only the split.
        groups: Codes of the groups `[n]`; None: every sample is its own.
    """
    unit = np.arange(n_samples) if groups is None else np.unique(groups, return_inverse=True)[1]
    first = np.unique(unit, return_index=True)[1]
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(first))
    stratum = _strata(factors or {}, n_samples)[first]
    order = order[np.argsort(stratum[order], kind="stable")]
    part = np.full(len(first), "train", dtype="<U10")
    for name, fraction in (("test", test_fraction), ("validation", validation_fraction)):
        part[_evenly(order[part[order] == "train"], round(fraction * len(first)), generator)] = name
    return part[unit]


def _strata(factors: Mapping[str, np.ndarray], n_samples: int) -> np.ndarray:
    """Code of the combination of all factors, `[n]`; having no label (-1) is one more level."""
    code = np.zeros(n_samples, dtype=np.int64)
    for codes in factors.values():
        code = np.unique(code * (int(codes.max()) + 2) + codes + 1, return_inverse=True)[1]
    return code


def _evenly(order: np.ndarray, wanted: int, generator: np.random.Generator) -> np.ndarray:
    """`wanted` entries spread evenly over `order` from a random start; at least one is left."""
    wanted = min(wanted, len(order) - 1)
    mark = (np.arange(len(order) + 1) * wanted + generator.integers(len(order))) // len(order)
    return order[np.flatnonzero(np.diff(mark))]


# Results of batches, put together without holding them twice.


def in_order(parts: Iterable[Sequence[Tensor]], n_samples: int) -> list[Tensor]:
    """Results per batch, one after the other, in one tensor each: as `torch.cat`, without holding them twice.

    Args:
        parts: Per batch, tensors `[batch, ...]`.
        n_samples: Rows of all batches.
    """
    whole: list[Tensor] = []
    start = 0
    for part in parts:
        whole = whole or [value.new_empty(n_samples, *value.shape[1:]) for value in part]
        stop = start + len(part[0])
        for all_rows, value in zip(whole, part, strict=True):
            all_rows[start:stop] = value
        start = stop
    return whole


# Means of a modality over the samples of each cell.


_PASS_SIZE = 2048


def weighted_means(data: TensorData, name: str, responsibilities: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the measured values under q(N|X), and its weight, per cell: `[C, *event]` of float64 each.

    `w_c = Σ_n γ_nc o_n` and `m_c = Σ_n γ_nc o_n x_n / w_c` with o_n = 1 where the element was measured; zero where no
    sample of the cell has it. One pass, batch by batch.

    Args:
        data: The samples.
        name: The modality.
        responsibilities: q(N|X), `[n, C]`.
    """
    total = weight = torch.zeros((), dtype=torch.float64, device=responsibilities.device)
    for batch in data.batches(_PASS_SIZE):
        value, measured = batch.values[name].double(), batch.measured(name).double()
        r = responsibilities[batch.index].double()
        total = total + torch.tensordot(r, measured * value, dims=([0], [0]))
        weight = weight + torch.tensordot(r, measured, dims=([0], [0]))
    return torch.where(weight > 0, total / weight.clamp(min=torch.finfo(torch.float64).tiny), 0.0), weight
