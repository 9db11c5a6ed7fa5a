"""Columns of a data set that stay on disk: rows are read, standardised and moved to the device when asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from inference.data.stored import StoredArray
from models.standardisation import Standardisation

__all__ = ["StoredRows", "loaded_rows", "standardised", "stored_observed", "stored_values"]

_BLOCK_BYTES = 2**23


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a column on disk, indexed by positions as a tensor is.

    Attributes:
        fetch: From positions in the file to a tensor `[len(positions), *shape]`.
        rows: Position in the file of each row of this column.
        shape: `[rows, *shape]`.
        device: Where the tensors go.
        bytes_per_row: Of the tensors.
    """

    fetch: Callable[[np.ndarray], Tensor]
    rows: np.ndarray
    shape: torch.Size
    device: torch.device
    bytes_per_row: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Tensor) -> Tensor:
        """The rows at these positions."""
        return self.fetch(self.rows[np.atleast_1d(index.cpu().numpy())]).to(self.device)

    def at(self, rows: np.ndarray) -> StoredRows:
        """The same column at these positions in the file; nothing is read."""
        shape = torch.Size((len(rows), *self.shape[1:]))
        return StoredRows(self.fetch, rows, shape, self.device, self.bytes_per_row)


def loaded_rows(columns: Sequence[StoredRows], index: np.ndarray) -> list[Tensor]:
    """Rows of several columns, in memory: block by block, so that what reading takes besides them stays small.

    Args:
        columns: Columns of the same rows.
        index: Increasing positions.
    """
    size = max(1, _BLOCK_BYTES // sum(column.bytes_per_row for column in columns))
    filled: list[Tensor] = []
    for start in range(0, len(index), size):
        # Block by block for all columns, not column by column: values and masks of a block are read once.
        parts = [column.fetch(column.rows[index[start : start + size]]) for column in columns]
        filled = filled or [part.new_empty(len(index), *part.shape[1:]) for part in parts]
        for whole, part in zip(filled, parts, strict=True):
            whole[start : start + size] = part
    return [whole.to(column.device) for whole, column in zip(filled, columns, strict=True)]


def stored_values(
    data: MultimodalData, name: str, standardisation: Standardisation, rows: np.ndarray, device: torch.device
) -> StoredRows:
    """The values of a modality on disk, standardised; zero where nothing was measured."""
    values = data.modalities[name]

    def fetch(rows: np.ndarray) -> Tensor:
        return standardised(values[rows], data.measured_rows(name, rows), standardisation)

    return StoredRows(fetch, rows, torch.Size(values.shape), device, values.nbytes // len(values))


def stored_observed(mask: StoredArray, rows: np.ndarray, device: torch.device) -> StoredRows:
    """Which elements were measured, on disk."""
    per_row = mask.nbytes // len(mask)
    return StoredRows(lambda rows: torch.from_numpy(mask[rows]), rows, torch.Size(mask.shape), device, per_row)


def standardised(values: np.ndarray, measured: np.ndarray, standardisation: Standardisation) -> Tensor:
    """In float32, computed in float64; zero where nothing was measured."""
    filled = np.where(measured, values.astype(np.float64), 1.0)
    return torch.from_numpy(np.where(measured, standardisation.apply(filled), 0.0).astype(np.float32))
