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

__all__ = ["FORMATS", "is_large", "read_file"]

_MOST_BYTES = 2**31
_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def read_file(path: Path, in_memory: str = "yes") -> xr.Dataset | dict[str, np.ndarray]:
    """The content of a file by its suffix: a dataset (`.nc`, `.zarr`), or arrays by name (`.npz`).

    Args:
        path: The file.
        in_memory: `yes`; `no` leaves a dataset on disk; `auto` does so if `is_large`.

    Raises:
        ValueError: Another suffix, no such file, a damaged one, or one that needs a library which is not there.
    """
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"data: expected the path of {FORMATS} file, got {str(path)!r}; save the arrays as one")
    if suffix == ".zarr" and importlib.util.find_spec("zarr") is None:
        raise ValueError(f"data: expected the package zarr for {str(path)!r}, got none; pip install 'causalpima[zarr]'")
    try:
        return _READERS[suffix](path, in_memory)
    except _UNREADABLE as error:
        raise ValueError(
            f"data: expected a readable {suffix} file, got {str(path)!r} ({_reason(error)}); "
            "check the path, or write the file again"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return (str(error) or type(error).__name__).splitlines()[0]


def is_large(data: xr.Dataset, in_memory: str) -> bool:
    """Whether a dataset stays on disk: where that is asked for, or by default above 2 GiB."""
    return in_memory == "no" or (in_memory == "auto" and data.nbytes > _MOST_BYTES)


def _read_npz(path: Path, in_memory: str) -> dict[str, np.ndarray]:
    if in_memory == "no":
        raise ValueError("it cannot stay on disk, as in_memory no asks; write it as .nc or .zarr")
    # Opened here: NumPy leaves a file that it opened and cannot read to the garbage collector.
    with path.open("rb") as file:
        content = np.load(file, allow_pickle=False)
        if not isinstance(content, np.lib.npyio.NpzFile):
            raise ValueError("it holds one bare array; write it with numpy.savez")
        with content as archive:
            if len(set(archive.files)) < len(archive.files):
                raise ValueError("a name stands twice in it")
            return {name: archive[name] for name in archive.files}


def _read_netcdf(path: Path, in_memory: str) -> xr.Dataset:
    # Durations stay numbers in their unit: `s` is a unit like any other.
    return _loaded(xr.open_dataset(path, engine="h5netcdf", cache=False, decode_timedelta=False), in_memory)


def _read_zarr(path: Path, in_memory: str) -> xr.Dataset:
    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2))
    return _loaded(xr.open_dataset(path, engine="zarr", cache=False, decode_timedelta=False), in_memory)


def _loaded(dataset: xr.Dataset, in_memory: str) -> xr.Dataset:
    """In memory and closed, or open."""
    if is_large(dataset, in_memory):
        return dataset
    with dataset:
        return dataset.load()


_READERS: Mapping[str, Callable[[Path, str], xr.Dataset | dict[str, np.ndarray]]] = {
    ".nc": _read_netcdf,
    ".npz": _read_npz,
    ".zarr": _read_zarr,
}
FORMATS = "a .nc, .npz or .zarr"
