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
from xarray.backends import BackendArray
from xarray.core import indexing

from causalpima.inference.store.hdf5 import check_hdf5
from causalpima.inference.store.input_files import UnusableFileError, check_folder, check_memory, check_regular

__all__ = [
    "FORMATS",
    "NETCDF_FILLERS",
    "UNREAD_GROUPS",
    "check_attributes",
    "decoded",
    "is_large",
    "read_file",
]


# What a file says of its values by the CF conventions: gaps, valid ranges and packing.
#
# xarray unpacks. What is no value is tested here, on the values as they are stored, as the conventions have it: xarray
# knows no `valid_min`, `valid_max`, `valid_range` and no fillers of netCDF, does not find a gap value of another type
# than the variable's, and looks for whole numbers in single precision, which does not hold them all.


NETCDF_FILLERS: Mapping[str, float] = {
    "i2": -32767,
    "u2": 65535,
    "i4": -2147483647,
    "u4": 4294967295,
    "i8": -9223372036854775806,
    "u8": 18446744073709551614,
    "f4": 9.969209968386869e36,
    "f8": 9.969209968386869e36,
}
"""What netCDF leaves where nothing was written, by kind and size of the type; of single bytes every code is a value."""

_GAPS = ("_FillValue", "missing_value")
_RANGE = ("valid_min", "valid_max", "valid_range")
_PACKING = ("scale_factor", "add_offset")
_DIGITS = 6
_REFUSED = "refused"


def decoded(raw: xr.Dataset, fillers: Mapping[str, float]) -> xr.Dataset:
    """The variables of a file, unpacked, with NaN where they have gaps; what is not loaded is decoded when it is read.

    Args:
        raw: The dataset as it is stored (`decode_cf=False`).
        fillers: Per variable, what the format leaves where nothing was written; it counts if there is no `_FillValue`
            but NaN.

    Returns:
        The dataset; a variable whose attributes cannot be followed is as it was, for `check_attributes` to refuse.
    """
    variables = {name: _followed(str(name), raw.variables[name], fillers) for name in raw.variables}
    whole = xr.Dataset(variables, attrs=raw.attrs)
    whole.encoding = raw.encoding
    whole.set_close(raw.close)
    # Durations stay numbers in their unit: `s` is a unit like any other.
    return xr.decode_cf(whole, decode_timedelta=False)


def check_attributes(variable: xr.Variable) -> None:
    """Refuse a variable of `decoded` whose attributes cannot be followed.

    Raises:
        ValueError: An attribute that is no number where it must be one, or a range with nothing in it.
    """
    if _REFUSED in variable.encoding:
        raise ValueError(variable.encoding[_REFUSED])


def _followed(name: str, variable: xr.Variable, fillers: Mapping[str, float]) -> xr.Variable:
    try:
        return _with_gaps(name, variable, fillers)
    except ValueError as error:  # of a variable that is not used it does not matter
        others = {key: value for key, value in variable.attrs.items() if key not in (*_GAPS, *_RANGE, *_PACKING)}
        refused = _with_attributes(variable, others)
        refused.encoding = {**variable.encoding, _REFUSED: str(error)}
        return refused


def _with_gaps(name: str, variable: xr.Variable, fillers: Mapping[str, float]) -> xr.Variable:
    """A stored variable with NaN where it has no value; a column of whole numbers without gaps stays one."""
    if variable.dtype.kind not in "iuf":
        return variable
    said = {key: _numbers(name, variable.attrs, key) for key in (*_GAPS, *_RANGE, *_PACKING) if key in variable.attrs}
    is_unsigned = variable.dtype.kind == "i" and variable.attrs.get("_Unsigned") == "true"
    fill, missing = (_of_type(said.get(key, ()), variable.dtype, is_unsigned) for key in _GAPS)
    if not fill and name in fillers:
        fill = [variable.dtype.type(fillers[name])]
    gaps = fill + missing
    valid = _valid_range(name, said, variable.dtype, is_unsigned)
    if not gaps and valid is None:
        return _with_attributes(variable, {key: value for key, value in variable.attrs.items() if key not in _GAPS})
    others = {key: value for key, value in variable.attrs.items() if key not in (*_GAPS, "_Unsigned")}
    data = indexing.LazilyIndexedArray(_WithGaps(variable, gaps, valid, is_unsigned))
    found = xr.Variable(variable.dims, data, others, variable.encoding)
    if variable.dtype.kind != "f" and variable.ndim < 2 and not found.isnull().any():
        return _with_attributes(variable, {key: value for key, value in variable.attrs.items() if key not in _GAPS})
    return found


def _with_attributes(variable: xr.Variable, attributes: Mapping[Any, Any]) -> xr.Variable:
    """The same values, not loaded."""
    changed = variable.copy(deep=False)
    changed.attrs = dict(attributes)
    return changed


def _numbers(name: str, attributes: Mapping[Any, Any], key: str) -> np.ndarray:
    numbers = np.ravel(np.asarray(attributes[key]))
    n_wanted = numbers.size if key in _GAPS else 2 if key == "valid_range" else 1
    if numbers.dtype.kind not in "iuf" or numbers.size != n_wanted:
        wanted = "numbers" if key in _GAPS else f"{n_wanted} number{'s' * (n_wanted > 1)}"
        raise ValueError(
            f"{name}: expected {wanted} in the attribute {key}, got {attributes[key]!r}; correct it in the file"
        )
    return numbers


def _of_type(given: Any, dtype: np.dtype, is_unsigned: bool) -> list[Any]:
    """Gap values in the type of the variable, without NaN and without those that it cannot hold."""
    values = np.asarray(given, dtype=None if len(given) else dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
        is_held = np.isfinite(cast) if dtype.kind == "f" else (cast == values) | (is_unsigned & np.isfinite(values))
    return list(cast[is_held])


def _valid_range(
    name: str, said: Mapping[str, np.ndarray], dtype: np.dtype, is_unsigned: bool
) -> tuple[Any, Any] | None:
    """Lowest and highest valid value as they are stored; None where nothing is said of them."""
    given = {key: said[key] for key in _RANGE if key in said}
    if not given:
        return None
    # Whole numbers that stand for fractions: limits in fractions are those of what they stand for.
    is_unpacked = dtype.kind != "f" and said.keys() & set(_PACKING) and all(n.dtype.kind == "f" for n in given.values())
    if dtype.kind == "f":
        given = {key: numbers.astype(dtype) for key, numbers in given.items()}
    elif is_unsigned and not is_unpacked:
        given = {key: numbers.astype(np.float64) % 2.0 ** (8 * dtype.itemsize) for key, numbers in given.items()}
    low, high = given.get("valid_range", (-np.inf, np.inf))
    low, high = max([low, *given.get("valid_min", ())]), min([high, *given.get("valid_max", ())])
    if not low <= high:
        raise ValueError(
            f"{name}: expected a valid range with values in it, got {low:g} to {high:g}; correct its attributes "
            f"{', '.join(given)} in the file"
        )
    if is_unpacked:
        scale, offset = float(said.get("scale_factor", [1.0])[0]), float(said.get("add_offset", [0.0])[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = sorted(np.round((np.array([low, high]) - offset) / scale, _DIGITS))
    limits = None if dtype.kind == "f" else np.iinfo(f"u{dtype.itemsize}" if is_unsigned else dtype)
    return None if limits is not None and low <= limits.min and high >= limits.max else (low, high)


class _WithGaps(BackendArray):
    """A variable of a file as floating-point numbers, NaN at its gap values and outside its valid range."""

    def __init__(
        self, variable: xr.Variable, gaps: list[Any], valid: tuple[Any, Any] | None, is_unsigned: bool
    ) -> None:
        stored = variable.dtype
        self.shape = variable.shape
        self.dtype = stored if stored.kind == "f" else np.dtype("f4" if stored.itemsize <= 2 else "f8")
        self._variable, self._gaps, self._valid = variable, gaps, valid
        self._read_as = np.dtype(f"u{stored.itemsize}") if is_unsigned else stored

    def __getitem__(self, key: indexing.ExplicitIndexer) -> np.ndarray:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        stored = self._variable[key].to_numpy()
        is_gap, values = np.isin(stored, self._gaps), stored.view(self._read_as)
        if self._valid is not None:
            is_gap |= (values < self._valid[0]) | (values > self._valid[1])
        numbers = values.astype(self.dtype, copy=False)
        return np.where(is_gap, np.array(np.nan, self.dtype), numbers) if is_gap.any() else numbers


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
        is_folder = suffix == ".zarr" and path.is_dir()
        (check_folder if is_folder else check_regular)(path)  # opening a pipe waits for a writer
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
        arrays: dict[str, h5py.Dataset] = {}
        file.visititems(lambda name, item: arrays.update({name: item}) if isinstance(item, h5py.Dataset) else None)
        _check_positions(item for item in arrays.values() if not _is_dimension_alone(item))
        raw = _group_with_variables(partial(_open, path, "h5netcdf"), arrays)
        home = file[raw.encoding[_GROUP] or "/"]
        pairs = {name: item for name, item in home.items() if isinstance(item, h5py.Dataset) and _is_pair(item.dtype)}
        stored = {name: item.fillvalue for name, item in pairs.items()}
    return _loaded(decoded(raw, _fillers(raw, stored)), in_memory)


def _is_dimension_alone(item: h5py.Dataset) -> bool:
    """Whether it stands for a dimension that has no positions: netCDF stores it as an array that nobody reads."""
    return "This is a netCDF dimension but not a netCDF variable" in str(item.attrs.get("NAME", ""))


def _check_positions(arrays: Iterable[Any]) -> None:
    """Refuse positions and numbers per sample that the memory cannot hold: they are read when a file is opened."""
    check_memory(sum(array.nbytes for array in arrays if array.ndim == 1))


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

    root = zarr.open_group(path, mode="r")
    arrays = {name: item for name, item in root.members(max_depth=None) if isinstance(item, zarr.Array)}
    _check_positions(arrays.values())
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
