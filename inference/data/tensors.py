"""Data as tensors on a device: scaling, splits and batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from models.batch import Batch

__all__ = ["Scaling", "TensorData", "fingerprint", "split_samples", "to_tensors"]


class Scaling(NamedTuple):
    """An affine scaling of one modality, `standardised = (value - loc) / scale`."""

    loc: float
    scale: float


@dataclass(frozen=True)
class TensorData:
    """Samples on a device, standardised.

    Attributes:
        values: Per modality `[sample, *shape]`.
        present: Per modality, bool `[sample]`, or None where the modality is complete.
        scaling: Per modality, how to go back to the units of the data.
    """

    values: Mapping[str, Tensor]
    present: Mapping[str, Tensor | None]
    scaling: Mapping[str, Scaling]

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.values.values())))

    def subset(self, index: np.ndarray) -> TensorData:
        """The samples at these positions."""
        rows = torch.as_tensor(index, device=next(iter(self.values.values())).device)
        return TensorData(
            {name: value[rows] for name, value in self.values.items()},
            {name: None if mask is None else mask[rows] for name, mask in self.present.items()},
            self.scaling,
        )

    def batch(self, index: Tensor) -> Batch:
        """The samples at these positions as a batch of this data set."""
        return Batch(
            {name: value[index] for name, value in self.values.items()},
            {name: None if mask is None else mask[index] for name, mask in self.present.items()},
            index,
            self.n_samples,
        )

    def batches(self, size: int, shuffle: bool = False) -> Iterator[Batch]:
        """All samples, `size` at a time; shuffled by torch's global generator on the CPU."""
        n = self.n_samples
        order = torch.randperm(n) if shuffle else torch.arange(n)
        order = order.to(next(iter(self.values.values())).device)
        for start in range(0, n, size):
            yield self.batch(order[start : start + size])


def split_samples(n_samples: int, validation_fraction: float, seed: int) -> np.ndarray:
    """`train` or `validation` per sample, `[n]` of str; at least one sample stays for training."""
    n_validation = min(round(n_samples * validation_fraction), n_samples - 1)
    split = np.full(n_samples, "train", dtype="<U10")
    split[np.random.default_rng(seed).permutation(n_samples)[:n_validation]] = "validation"
    return split


def to_tensors(
    data: MultimodalData, training: np.ndarray, standardise: Mapping[str, bool], device: torch.device
) -> TensorData:
    """Move data to a device, scaled by the statistics of the training samples.

    Args:
        data: The samples.
        training: Bool `[sample]`, whose present values give mean and standard deviation (over all elements).
        standardise: Per modality, whether to scale at all.
        device: Where the tensors go.
    """
    scaling = {
        name: _fit_scaling(values[training & data.present[name]]) if standardise[name] else Scaling(0.0, 1.0)
        for name, values in data.modalities.items()
    }
    values = {name: _scaled(data, name, scaling[name]).to(device) for name in data.modalities}
    present = {
        name: None if mask.all() else torch.from_numpy(np.ascontiguousarray(mask)).to(device)
        for name, mask in data.present.items()
    }
    return TensorData(values, present, scaling)


def _fit_scaling(values: np.ndarray) -> Scaling:
    if not values.size:
        return Scaling(0.0, 1.0)
    varies = values.min() < values.max()
    return Scaling(float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64)) if varies else 1.0)


def _scaled(data: MultimodalData, name: str, scaling: Scaling) -> Tensor:
    scaled = data.modalities[name].astype(np.float64)
    scaled -= scaling.loc
    scaled /= scaling.scale
    scaled[~data.present[name]] = 0.0
    return torch.from_numpy(scaled.astype(np.float32))


def fingerprint(data: MultimodalData) -> str:
    """Hash of the names, shapes, values and masks of all modalities."""
    digest = hashlib.sha256()
    for name, values in data.modalities.items():
        digest.update(f"{name} {values.dtype} {values.shape}\n".encode())
        digest.update(np.ascontiguousarray(values).data)
        digest.update(np.packbits(data.present[name]).tobytes())
    return digest.hexdigest()
