"""Files of samples: netCDF, zarr and npz."""

from __future__ import annotations

import importlib.util
import math
import os
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from inference.data.cf_conventions import NETCDF_FILLERS, decoded
from inference.results.hdf5_files import check_hdf5
from inference.results.input_files import UnusableFileError, check_memory, check_regular

__all__ = ["FORMATS", "UNREAD_GROUPS", "is_large", "read_file"]

UNREAD_GROUPS = "unread_groups"
"""Entry of a dataset's encoding: groups of its file that hold further variables."""

_CLASSIC, _CDF_5 = (b"CDF\x01", b"CDF\x02"), b"CDF\x05"
_GROUP = "group"
_MOST_NAMED = 4
_MOST_BYTES = 2**31


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
        raise ValueError(f"data: expected the package zarr for {str(path)!r}, got none; pip install zarr")
    try:
        if suffix != ".zarr":
            check_regular(path)  # opening a pipe waits for a writer
        return _READERS[suffix](path, in_memory)
    except MemoryError:
        raise
    except Exception as error:  # libraries raise what they like at damaged files
        raise ValueError(
            f"data: expected a readable {suffix} file, got {str(path)!r} ({_reason(error)}); "
            "check the path, or write the file again"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno and not isinstance(error, UnusableFileError):
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
            with zipfile.ZipFile(path) as members:
                check_memory(sum(_array_bytes(members, name) for name in members.namelist()))
            return {name: archive[name] for name in archive.files}


def _array_bytes(archive: zipfile.ZipFile, member: str) -> int:
    """What an array takes by its header: compressed, a small file may hold terabytes of zeros."""
    with archive.open(member) as file:
        if np.lib.format.read_magic(file) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return int(math.prod(shape)) * int(dtype.itemsize)


def _read_netcdf(path: Path, in_memory: str) -> xr.Dataset:
    with path.open("rb") as file:
        form = file.read(4)
    if form == _CDF_5:
        raise ValueError("it is netCDF of the form CDF-5, which is not read; nccopy -k nc4 makes netCDF-4 of it")
    if form in _CLASSIC:
        raw = xr.open_dataset(path, engine="scipy", cache=False, decode_cf=False)
        return _loaded(decoded(raw, _fillers(raw)), in_memory)
    check_hdf5(path)
    with h5py.File(path) as file:
        arrays: list[str] = []
        file.visititems(lambda name, item: arrays.append(name) if isinstance(item, h5py.Dataset) else None)
        raw = _group_with_variables(partial(_open, path, "h5netcdf"), arrays)
        home = file[raw.encoding[_GROUP] or "/"]
        pairs = {name: item for name, item in home.items() if isinstance(item, h5py.Dataset) and _is_pair(item.dtype)}
        stored = {name: item.fillvalue for name, item in pairs.items()}
    return _loaded(decoded(raw, _fillers(raw, stored)), in_memory)


def _fillers(raw: xr.Dataset, stored: Mapping[str, Any] | None = None) -> dict[str, float]:
    """What netCDF leaves in each variable where nothing was written.

    The fillers of two bytes are values at the end of the range of many a detector: they count only where the file says
    that the variable was filled with them, which classic files cannot say.
    """
    types = {str(name): variable.dtype for name, variable in raw.variables.items()}
    fillers = {name: NETCDF_FILLERS.get(f"{dtype.kind}{dtype.itemsize}") for name, dtype in types.items()}
    return {
        name: filler
        for name, filler in fillers.items()
        if filler is not None and (stored is None or not _is_pair(types[name]) or stored.get(name) == filler)
    }


def _is_pair(dtype: np.dtype) -> bool:
    """Whole numbers of two bytes."""
    return dtype.kind in "iu" and dtype.itemsize == 2


def _read_zarr(path: Path, in_memory: str) -> xr.Dataset:
    import zarr

    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2))
    root = zarr.open_group(path, mode="r")
    arrays = {name: item for name, item in root.members(max_depth=None) if isinstance(item, zarr.Array)}
    raw = _group_with_variables(partial(_open, path, "zarr"), arrays)
    for name, variable in raw.variables.items():
        array = arrays.get(f"{raw.encoding[_GROUP]}/{name}" if raw.encoding[_GROUP] else str(name))
        # In version 2 xarray keeps a declared gap value where zarr has what was never written, by default 0: that one
        # is a value unless the attribute itself says otherwise.
        if array is not None and array.metadata.zarr_format == 2 and not array.fill_value:
            declared = array.attrs.get("_FillValue")
            others = {key: value for key, value in variable.attrs.items() if key != "_FillValue"}
            variable.attrs = others if declared is None else {**others, "_FillValue": declared}
    return _loaded(decoded(raw, {}), in_memory)


def _open(path: Path, engine: str, group: str | None) -> xr.Dataset:
    """A group as it is stored."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to open Zarr store with consolidated", RuntimeWarning)
        found = xr.open_dataset(path, engine=engine, group=group, cache=False, decode_cf=False)
    if engine != "zarr":
        return found
    # Without consolidated metadata the order is that in which a folder is listed: chance.
    ordered = xr.Dataset({name: found.variables[name] for name in sorted(found.variables, key=str)}, attrs=found.attrs)
    ordered.set_close(found.close)
    return ordered


def _group_with_variables(open_group: Callable[[str | None], xr.Dataset], arrays: Iterable[str]) -> xr.Dataset:
    """The variables of the root as they are stored, else those of the one group that has some.

    Args:
        open_group: Opens a group by its path.
        arrays: Paths of all arrays in the file.

    Raises:
        ValueError: Several groups have some.
    """
    root = open_group(None)
    groups = sorted({name.rpartition("/")[0] for name in arrays} - {""})
    if _measured(root) or not groups:
        root.encoding |= {_GROUP: None, UNREAD_GROUPS: tuple(groups)}
        return root
    opened = {name: open_group(name) for name in groups}
    having = {name: names for name, dataset in opened.items() if (names := _measured(dataset))}
    if len(having) != 1:
        listed = "; ".join(f"/{name} has {', '.join(names[:_MOST_NAMED])}" for name, names in having.items())
        raise ValueError(f"expected its variables in one group, got {listed or 'none in any'}; put them into one")
    found = next(iter(having))
    inner, variables = opened[found], dict(opened[found].variables)
    for name in [*(name for name in reversed(groups) if found.startswith(f"{name}/")), ""]:
        outer = opened.get(name, root)  # dimensions and their coordinates are those of the groups above, too
        fit = {key: value for key, value in outer.variables.items() if value.sizes.items() <= inner.sizes.items()}
        variables = {**fit, **variables}
    whole = xr.Dataset(variables, attrs=inner.attrs)
    closing = ExitStack()
    for dataset in (root, *opened.values()):
        closing.callback(dataset.close)
    whole.set_close(closing.close)
    whole.encoding |= {_GROUP: found, UNREAD_GROUPS: ()}
    return whole


def _measured(dataset: xr.Dataset) -> list[str]:
    """Variables that are no coordinates of a dimension and no scalars."""
    return [str(name) for name, variable in dataset.variables.items() if variable.ndim and name not in dataset.dims]


def _loaded(dataset: xr.Dataset, in_memory: str) -> xr.Dataset:
    """In memory and closed, or open."""
    if is_large(dataset, in_memory):
        return dataset
    with dataset:
        check_memory(dataset.nbytes)
        for name, variable in dataset.variables.items():
            try:
                variable.load()
            except MemoryError:
                raise
            except Exception as error:
                raise ValueError(f"{name}: {_reason(error)}") from error
        return dataset


_READERS: Mapping[str, Callable[[Path, str], xr.Dataset | dict[str, np.ndarray]]] = {
    ".nc": _read_netcdf,
    ".npz": _read_npz,
    ".zarr": _read_zarr,
}
FORMATS = "a .nc, .npz or .zarr"
