"""A netCDF file of predictions, written a block of samples at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import h5netcdf
import h5py
import numpy as np

from inference.prediction.layout import SAMPLE, Layout, Variable
from inference.results.hdf5_files import survives_full_disk

__all__ = ["write_blocks"]

_CHUNK_BYTES = 2**18
_MOST_ROWS = 1024


def write_blocks(path: Path, layout: Layout, blocks: Iterable[tuple[slice, Mapping[str, np.ndarray]]]) -> None:
    """Create a file and fill it.

    Args:
        path: New file.
        layout: Its dimensions and variables.
        blocks: Where samples stand, and the values of all variables that come in blocks.

    Raises:
        OSError: The disk is full.
    """
    with survives_full_disk(path) as raw, h5netcdf.File(raw, "w") as file:
        file.attrs.update(layout.attributes)
        file.dimensions = dict(layout.sizes)
        for variable in (*layout.coordinates, *layout.variables):
            _create(file, variable, layout)
        for rows, block in blocks:
            for name, values in block.items():
                file[name][rows] = values
            raw.check()


def _create(file: h5netcdf.File, variable: Variable, layout: Layout) -> None:
    dtype = h5py.string_dtype() if variable.dtype == "str" else np.dtype(variable.dtype)
    shape = [layout.sizes[dim] for dim in variable.dims]
    is_block = variable.values is None and variable.dims[0] == SAMPLE
    chunks = _chunks(shape, np.dtype(variable.dtype).itemsize) if is_block else None
    fill = np.nan if is_block else None
    created = file.create_variable(variable.name, variable.dims, dtype=dtype, fillvalue=fill, chunks=chunks)
    created.attrs.update(variable.attributes or {})
    if variable.values is not None:
        created[...] = variable.values


def _chunks(shape: list[int], item_bytes: int) -> tuple[int, ...]:
    row_bytes = int(np.prod(shape[1:])) * item_bytes
    return (max(1, min(_MOST_ROWS, shape[0], _CHUNK_BYTES // row_bytes)), *shape[1:])
