"""Variables that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from inference.data.masks import check_mask_shape, measured_elements
from inference.data.modalities import arrange
from inference.data.multimodal import ModalityKind

if TYPE_CHECKING:
    from inference.data.scan import Scan

__all__ = ["RowReader", "Rows", "StoredArray", "StoredVariable", "row_blocks"]

_BLOCK_BYTES = 2**23
_DENSE = 2  # one row of a slice in so many is wanted


def row_blocks(n_samples: int, bytes_per_row: int) -> Iterator[slice]:
    """Slices over all samples, of some MiB each."""
    size = max(1, _BLOCK_BYTES // max(bytes_per_row, 1))
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


class StoredVariable:
    """A variable of a dataset that is not loaded, as an array with the samples first.

    Args:
        values: The variable, backed by its file.
        order: Its dimensions in the order wanted, that of the samples first.
    """

    def __init__(self, values: xr.DataArray, order: Sequence[Hashable]) -> None:
        self._variable, self._order = values.variable, tuple(order)
        self.name = str(values.name)
        self.dtype = values.dtype
        self.shape = tuple(values.sizes[dimension] for dimension in self._order)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Rows of a slice, or at increasing positions.

        Raises:
            ValueError: The file is damaged there.
        """
        try:
            return self._variable.isel({self._order[0]: rows}).transpose(*self._order).to_numpy()
        except MemoryError:
            raise
        except Exception as error:  # libraries raise what they like at damaged files
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ValueError(
                f"{self.name}: expected rows that can be read, got an error ({reason}); write the file again"
            ) from error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it."""
        return np.asarray(self[slice(None)], dtype=dtype)


class Rows(NamedTuple):
    """Some samples of a modality: values as the file has them, and which of them were measured; channels last."""

    values: np.ndarray
    measured: np.ndarray


class RowReader:
    """Samples of a modality, read from disk; those asked for last are kept.

    Args:
        name: Name of the modality, for messages.
        values: Its variable.
        kind: How it is shown.
        mask: Its mask, `[sample]` or of the shape of the variable, or None.
    """

    def __init__(
        self, name: str, values: StoredVariable, kind: ModalityKind, mask: StoredVariable | np.ndarray | None = None
    ) -> None:
        self.name, self.kind = name, kind
        self._values, self._mask = values, mask
        self._last: tuple[bytes, Rows] | None = None
        self.shape = (values.shape[0], *arrange(np.empty((1, *values.shape[1:]), dtype=bool), kind).shape[1:])
        self.dtype = values.dtype
        if mask is not None:
            check_mask_shape(name, mask.shape, values.shape)

    def read(self, rows: slice | np.ndarray) -> Rows:
        """Rows of a slice, or at increasing positions.

        Raises:
            ValueError: A mask with other values than 0 and 1, or a damaged file.
        """
        key = repr(rows).encode() if isinstance(rows, slice) else rows.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = (key, self._read(rows))
        return self._last[1]

    def _read(self, rows: slice | np.ndarray) -> Rows:
        values = self._values[rows]
        measured = measured_elements(self.name, values, None if self._mask is None else self._mask[rows])
        return Rows(arrange(values, self.kind), arrange(measured, self.kind))

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """All samples in order, some MiB at a time."""
        for rows in row_blocks(self.shape[0], int(np.prod(self.shape[1:])) * self.dtype.itemsize):
            yield rows, self._read(rows)


class StoredArray:
    """One entry of `MultimodalData.modalities` or `.observed` that is on disk, indexed by samples as an array is.

    An index is a slice, a position, positions in any order, or bool `[sample]`; what comes back is a NumPy array in
    memory: float32 values with zeros where nothing was measured, or bool.

    Args:
        reader: Reads the samples.
        of_mask: Give what was measured instead of the values.
        scan: What one pass over it found.

    Attributes:
        scan: The same.
        count: Number of measured elements in all.
        shape: `[sample, *shape]`; also `ndim`, `size`, `dtype`, `nbytes`, of what it would be in memory.
    """

    def __init__(self, reader: RowReader, of_mask: bool, scan: Scan) -> None:
        self._reader, self._of_mask, self.scan, self.count = reader, of_mask, scan, scan.count
        self.dtype = np.dtype(bool if of_mask else np.float32)
        self.shape = reader.shape
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Samples by a slice, a position, positions, or a mask of them; a mask of single elements loads everything."""
        if isinstance(index, slice) and index.step in (None, 1):
            return self._converted(self._reader.read(slice(*index.indices(len(self)))))
        chosen = index if isinstance(index, slice) else np.asarray(index)
        if not isinstance(chosen, slice) and chosen.ndim > 1:
            return np.asarray(self)[chosen]
        positions = np.arange(len(self))[chosen]
        if positions.ndim == 0:
            return self._converted(self._reader.read(slice(int(positions), int(positions) + 1)))[0]
        rows, inverse = np.unique(positions, return_inverse=True)
        found = self._increasing(rows)
        return found if np.array_equal(positions, rows) else found[inverse]

    def _increasing(self, rows: np.ndarray) -> np.ndarray:
        """At increasing positions; where they are dense, out of a slice, which is several times as fast."""
        if not len(rows) or rows[-1] - rows[0] >= _DENSE * len(rows):
            return self._converted(self._reader.read(rows))
        found = self._converted(self._reader.read(slice(int(rows[0]), int(rows[-1]) + 1)))
        return found if len(found) == len(rows) else found[rows - rows[0]]

    def _converted(self, rows: Rows) -> np.ndarray:
        if self._of_mask:
            return rows.measured.copy()
        return np.ascontiguousarray(np.where(rows.measured, rows.values, 0), dtype=np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All samples, in memory."""
        return np.asarray(self[:], dtype=dtype)

    def astype(self, dtype: Any) -> np.ndarray:
        """All samples, in memory, of another type."""
        return np.asarray(self).astype(dtype)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All samples in order, some MiB at a time."""
        for rows in row_blocks(len(self), self.nbytes // max(len(self), 1)):
            yield rows, self[rows]
