"""Whatever people hand to `fit`, as `MultimodalData`."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from inference.data.dataset import from_dataset
from inference.data.modalities import assemble, to_modality
from inference.data.multimodal import MultimodalData
from inference.data.validation import validate

__all__ = ["DataLike", "as_multimodal"]

DataLike = MultimodalData | xr.Dataset | Mapping[str, Any] | np.ndarray | Tensor | str | Path

_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error)


def as_multimodal(data: DataLike) -> MultimodalData:
    """Samples in the form that training takes, checked.

    Args:
        data: `MultimodalData`, returned as it is; an array or tensor `[sample, ...]`, which becomes the modality `x`; a
            mapping of names to such arrays; an `xarray.Dataset` (see `from_dataset`); or the path of an npz file (as
            a mapping) or a netCDF file (as a dataset). Shapes, kinds and absent samples: see `to_modality`.

    Raises:
        ValueError: Data that cannot be fitted; one line that names the variable and says what to do.
    """
    samples = _convert(data)
    validate(samples)
    return samples


def _convert(data: object) -> MultimodalData:
    if isinstance(data, MultimodalData):
        return data
    if isinstance(data, str | Path):
        return _from_file(Path(data).expanduser())
    if isinstance(data, xr.Dataset):
        return from_dataset(data, "data")
    if isinstance(data, Mapping):
        return _from_mapping(data, "data")
    if isinstance(data, np.ndarray | Tensor):
        return _from_mapping({"x": data}, "data")
    raise ValueError(
        "data: expected MultimodalData, an array, a mapping of names to arrays, an xarray.Dataset or the path of a "
        f".npz or .nc file, got {type(data).__name__}; numpy.asarray turns most things into an array"
    )


def _from_mapping(arrays: Mapping[str, Any], name: str) -> MultimodalData:
    return assemble(name, {key: to_modality(key, values) for key, values in arrays.items()})


def _from_file(path: Path) -> MultimodalData:
    content = _read(path)
    if isinstance(content, xr.Dataset):
        return from_dataset(content, path.stem)
    return _from_mapping(content, path.stem)


def _read(path: Path) -> xr.Dataset | dict[str, np.ndarray]:
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"data: expected the path of a .npz or .nc file, got {str(path)!r}; save the arrays as one")
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
            return {name: archive[name] for name in archive.files}


def _read_netcdf(path: Path) -> xr.Dataset:
    with xr.open_dataset(path, engine="h5netcdf") as dataset:
        return dataset.load()


_READERS: Mapping[str, Callable[[Path], xr.Dataset | dict[str, np.ndarray]]] = {
    ".npz": _read_npz,
    ".nc": _read_netcdf,
}
