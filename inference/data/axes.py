"""Coordinates of a dataset: the positions of curves, the names of samples."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import xarray as xr

from inference.data.multimodal import Axis

__all__ = ["position_axis", "sample_names", "unit_of"]


def position_axis(values: xr.DataArray, sample: Hashable) -> Axis | None:
    """The numeric coordinate of the second dimension of a variable with two, where it has one.

    Dates and durations become seconds, dates those since the first.

    Args:
        values: The variable.
        sample: Its dimension of the samples.
    """
    rest = [dimension for dimension in values.dims if dimension != sample]
    if len(rest) != 1 or rest[0] not in values.coords:
        return None
    coordinate = values.coords[rest[0]]
    positions = coordinate.to_numpy()
    if positions.dtype.kind in "mM":
        return Axis(str(rest[0]), _seconds(positions), "s")
    if positions.dtype.kind not in "iuf":
        return None
    return Axis(str(rest[0]), positions.astype(np.float64), unit_of(coordinate))


def _seconds(times: np.ndarray) -> np.ndarray:
    elapsed = times - times[0] if times.dtype.kind == "M" else times
    return np.where(np.isnat(elapsed), np.nan, elapsed / np.timedelta64(1, "s"))


def sample_names(data: xr.Dataset, sample: Hashable) -> np.ndarray | None:
    """The coordinate of the samples as text, where there is one."""
    if sample not in data.coords:
        return None
    return np.array([str(name) for name in data.coords[sample].to_numpy()], dtype=str)


def unit_of(values: xr.DataArray) -> str:
    """The attribute `units`; `1` is none."""
    unit = str(values.attrs.get("units", "")).strip()
    return "" if unit == "1" else unit
