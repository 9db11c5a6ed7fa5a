"""Files of samples: netCDF, zarr and npz."""

from __future__ import annotations

import importlib.util
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import xarray as xr

__all__ = ["FORMATS", "read_file"]

_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def read_file(path: Path) -> xr.Dataset | dict[str, np.ndarray]:
    """The content of a file by its suffix: a dataset (`.nc`, `.zarr`), or arrays by name (`.npz`).

    Raises:
        ValueError: Another suffix, no such file, a damaged one, or one that needs a library which is not there.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"data: expected the path of {FORMATS} file, got {str(path)!r}; save the arrays as one")
    if suffix == ".zarr" and importlib.util.find_spec("zarr") is None:
        raise ValueError(f"data: expected the package zarr for {str(path)!r}, got none; pip install 'causalpima[zarr]'")
    try:
        return _READERS[suffix](path)
    except _UNREADABLE as error:
        raise ValueError(
            f"data: expected a readable {suffix} file, got {str(path)!r} ({_reason(error)}); "
            "check the path, or write the file again"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).splitlines()[0]


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    # Opened here: NumPy leaves a file that it opened and cannot read to the garbage collector.
    with path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it holds one bare array; write it with numpy.savez")
        with content as archive:
            if len(set(archive.files)) < len(archive.files):
                raise ValueError("a name stands twice in it")
            return {name: archive[name] for name in archive.files}


def _read_netcdf(path: Path) -> xr.Dataset:
    # Durations stay numbers in their unit: `s` is a unit like any other.
    with xr.open_dataset(path, engine="h5netcdf", decode_timedelta=False) as dataset:
        return dataset.load()


def _read_zarr(path: Path) -> xr.Dataset:
    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2))
    with xr.open_zarr(path, chunks=None, decode_timedelta=False) as dataset:
        return dataset.load()


_READERS: Mapping[str, Callable[[Path], xr.Dataset | dict[str, np.ndarray]]] = {
    ".nc": _read_netcdf,
    ".npz": _read_npz,
    ".zarr": _read_zarr,
}
FORMATS = "a .nc, .npz or .zarr"
