"""What a file says of its values by the CF conventions: gaps, valid ranges and packing.

xarray unpacks. What is no value is tested here, on the values as they are stored, as the conventions have it: xarray
knows no `valid_min`, `valid_max`, `valid_range` and no fillers of netCDF, does not find a gap value of another type
than the variable's, and looks for whole numbers in single precision, which does not hold them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

__all__ = ["NETCDF_FILLERS", "check_attributes", "decoded"]

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
