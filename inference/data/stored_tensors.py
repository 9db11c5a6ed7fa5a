"""Columns of a data set that stay on disk: rows are read, standardised and moved to the device when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import MultimodalData
from inference.data.stored import StoredArray
from models.standardisation import Standardisation

__all__ = ["StoredRows", "select_rows", "stored_observed", "stored_values"]


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

    def select(self, index: np.ndarray) -> StoredRows:
        """A column of these rows; nothing is read."""
        rows = self.rows[index]
        shape = torch.Size((len(rows), *self.shape[1:]))
        return StoredRows(self.fetch, rows, shape, self.device, self.bytes_per_row)


def select_rows(column: Tensor | StoredRows, index: np.ndarray) -> Tensor | StoredRows:
    """A column of the rows at these positions."""
    if isinstance(column, StoredRows):
        return column.select(index)
    return column[torch.as_tensor(index, device=column.device)]


def stored_values(
    data: MultimodalData, name: str, standardisation: Standardisation, device: torch.device
) -> StoredRows:
    """The values of a modality on disk, standardised; zero where nothing was measured."""
    values = data.modalities[name]

    def fetch(rows: np.ndarray) -> Tensor:
        return standardised(values[rows], data.measured_rows(name, rows), standardisation)

    return StoredRows(fetch, np.arange(len(values)), torch.Size(values.shape), device, values.nbytes // len(values))


def stored_observed(mask: StoredArray, device: torch.device) -> StoredRows:
    """Which elements were measured, on disk."""
    per_row = mask.nbytes // len(mask)
    return StoredRows(
        lambda rows: torch.from_numpy(mask[rows]), np.arange(len(mask)), torch.Size(mask.shape), device, per_row
    )


def standardised(values: np.ndarray, measured: np.ndarray, standardisation: Standardisation) -> Tensor:
    """In float32, computed in float64; zero where nothing was measured."""
    filled = np.where(measured, values.astype(np.float64), 1.0)
    return torch.from_numpy(np.where(measured, standardisation.apply(filled), 0.0).astype(np.float32))
