"""Data as tensors on a device: standardisation and batches."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from inference.data.scaling import Scale, fit_standardisation
from inference.data.stored import StoredArray, row_blocks
from inference.data.stored_tensors import StoredRows, loaded_rows, standardised, stored_observed, stored_values
from inference.data.windows import windows
from models.batch import Batch
from models.standardisation import Standardisation

__all__ = ["TensorData", "fingerprint", "log_jacobian", "to_tensors"]

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
