"""Data as tensors on a device: standardisation and batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from inference.data.scaling import Scale, fit_standardisation
from models.batch import Batch
from models.standardisation import Standardisation

__all__ = ["TensorData", "fingerprint", "log_jacobian", "standardised", "to_tensors"]


@dataclass(frozen=True)
class TensorData:
    """Samples on a device, standardised.

    Attributes:
        values: Per modality `[sample, *shape]`; zeros where nothing was measured.
        present: Per modality, bool `[sample]`, or None where the modality is complete.
        standardisation: Per modality, between the units of the data and the scale of the model.
        observed: Per modality that lacks single elements, bool `[sample, *shape]`: those measured.
        covariates: Indicators of the levels of all covariates, `[sample, V]`, or None.
    """

    values: Mapping[str, Tensor]
    present: Mapping[str, Tensor | None]
    standardisation: Mapping[str, Standardisation]
    observed: Mapping[str, Tensor] = field(default_factory=dict)
    covariates: Tensor | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.values.values())))

    @property
    def device(self) -> torch.device:
        """Where the samples are."""
        return next(iter(self.values.values())).device

    def n_elements(self, name: str) -> int:
        """Number of measured elements of a modality."""
        if name in self.observed:
            return int(self.observed[name].sum())
        present = self.present[name]
        n_present = self.n_samples if present is None else int(present.sum())
        return n_present * self.values[name][0].numel()

    def log_jacobian(self, name: str, batch: Batch) -> Tensor:
        """What log-densities lack to be in the units of the data; see the function `log_jacobian`."""
        return log_jacobian(self.standardisation[name], name, batch)

    def subset(self, index: np.ndarray) -> TensorData:
        """The samples at these positions."""
        rows = torch.as_tensor(index, device=self.device)
        values, present, observed, covariates = self._rows(rows)
        return TensorData(values, present, self.standardisation, observed, covariates)

    def batch(self, index: Tensor) -> Batch:
        """The samples at these positions as a batch of this data set."""
        values, present, observed, covariates = self._rows(index)
        return Batch(values, present, index, self.n_samples, observed, covariates)

    def _rows(
        self, index: Tensor
    ) -> tuple[dict[str, Tensor], dict[str, Tensor | None], dict[str, Tensor], Tensor | None]:
        return (
            {name: value[index] for name, value in self.values.items()},
            {name: None if mask is None else mask[index] for name, mask in self.present.items()},
            {name: mask[index] for name, mask in self.observed.items()},
            None if self.covariates is None else self.covariates[index],
        )

    def batches(self, size: int, shuffle: bool = False) -> Iterator[Batch]:
        """All samples, `size` at a time; shuffled by torch's global generator on the CPU."""
        n = self.n_samples
        order = torch.randperm(n) if shuffle else torch.arange(n)
        order = order.to(self.device)
        for start in range(0, n, size):
            yield self.batch(order[start : start + size])


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
    return TensorData(
        {name: _standardised(data, name, standardisation[name]).to(device) for name in data.modalities},
        {name: None if mask.all() else _tensor(mask).to(device) for name, mask in data.present.items()},
        standardisation,
        {name: _tensor(mask).to(device) for name, mask in data.observed.items()},
        _covariates(data, device),
    )


def log_jacobian(standardisation: Standardisation, name: str, batch: Batch) -> Tensor:
    """Σ log |dy / dx| over the measured elements of a modality, `[B]`; zero where it is absent."""
    value, present = batch.values[name], batch.present[name]
    terms = standardisation.log_derivative(standardisation.invert(value))
    if name in batch.observed:
        terms = torch.where(batch.observed[name], terms, 0.0)
    total = terms.flatten(1).sum(1)
    return total if present is None else torch.where(present, total, 0.0)


def standardised(values: np.ndarray, measured: np.ndarray, standardisation: Standardisation) -> Tensor:
    """In float32, computed in float64; zero where nothing was measured."""
    filled = np.where(measured, values.astype(np.float64), 1.0)
    return _tensor(np.where(measured, standardisation.apply(filled), 0.0).astype(np.float32))


def _standardised(data: MultimodalData, name: str, standardisation: Standardisation) -> Tensor:
    return standardised(data.modalities[name], data.measured(name), standardisation)


def _covariates(data: MultimodalData, device: torch.device) -> Tensor | None:
    if not data.covariates:
        return None
    blocks = [np.eye(len(data.covariate_levels[name]))[codes] for name, codes in data.covariates.items()]
    return torch.from_numpy(np.concatenate(blocks, axis=1).astype(np.float32)).to(device)


def _tensor(array: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def fingerprint(data: MultimodalData) -> str:
    """Hash of the names, shapes, values and masks of all modalities, and of covariates and groups."""
    digest = hashlib.sha256()
    for name, values in data.modalities.items():
        digest.update(f"{name} {values.dtype} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).data)
        digest.update(np.packbits(data.present[name]).tobytes())
        if name in data.observed:
            digest.update(np.packbits(data.observed[name]).tobytes())
    for name, codes in data.covariates.items():
        digest.update(f"covariate {name} {data.covariate_levels[name]}\n".encode())
        digest.update(codes.astype(np.int64).tobytes())
    if data.groups is not None:
        digest.update(data.groups.astype(np.int64).tobytes())
    return digest.hexdigest()
