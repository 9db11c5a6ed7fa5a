"""The course of a fit as a dataset: one record per epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

__all__ = ["history_group"]


def history_group(history: Sequence[Mapping[str, Any]]) -> xr.Dataset:
    """One variable per quantity, along the dimension `record`.

    Numbers stay numbers, None becomes NaN. Words become codes, their names the coordinate `KEY_level`. Numbers by
    name get a second dimension `KEY_name`.

    Args:
        history: One record per epoch.
    """
    keys = dict.fromkeys(key for record in history for key in record)
    columns = [_column(key, [record.get(key) for record in history]) for key in keys]
    return xr.merge(columns, join="exact")


def _column(key: str, values: list[Any]) -> xr.Dataset:
    if any(isinstance(value, Mapping) for value in values):
        return _named_numbers(key, [value or {} for value in values])
    if any(isinstance(value, str) for value in values):
        levels, codes = np.unique([value or "" for value in values], return_inverse=True)
        return xr.Dataset({key: ("record", codes)}, coords={f"{key}_level": levels.astype(object)})
    return xr.Dataset({key: ("record", _numbers(values))})


def _named_numbers(key: str, values: list[Mapping[str, Any]]) -> xr.Dataset:
    names = list(dict.fromkeys(name for value in values for name in value))
    table = np.array([_numbers([value.get(name) for name in names]) for value in values], dtype=float)
    dim = f"{key}_name"
    return xr.Dataset({key: (("record", dim), table)}, coords={dim: np.array(names, dtype=object)})


def _numbers(values: list[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])
