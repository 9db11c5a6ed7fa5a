"""Names of variables, dimensions and coordinates in the exported file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from causalpima.inference.findings.arrays import GraphArrays, ModalityArrays

__all__ = [
    "SAMPLE_ID",
    "TOTAL",
    "Coordinate",
    "axis_names",
    "cell_names",
    "modality_attributes",
    "outcome_dimensions",
    "position_coords",
    "unit_attributes",
    "variable_names",
]


SAMPLE_ID = "sample_id"
"""Dimension of the samples wherever there are draws: ArviZ keeps `sample` for stacked chains and draws."""

TOTAL = "total"
"""Log-likelihood of all modalities of a sample together."""

_AXES = {"image": ("height", "width", "channel"), "curve": ("position",), "vector": ("feature",)}
_PREFIXES = (SAMPLE_ID, *(axis for axes in _AXES.values() for axis in axes))


def variable_names(names: Iterable[str]) -> dict[str, str]:
    """A name in the file for every name of a user.

    netCDF has no `/` in names; and a variable that is named like a dimension makes ArviZ 0.23 drop its whole group
    silently. Such names get a `_` instead or at the end.
    """
    names = list(names)
    reserved = {"chain", "draw", "sample", SAMPLE_ID} | {f"{axis}_{name}" for axis, name in product(_PREFIXES, names)}
    found: dict[str, str] = {}
    for name in names:
        candidate = name.replace("/", "_")
        while candidate in reserved | set(found.values()):
            candidate += "_"
        found[name] = candidate
    return found


def axis_names(name: str, modality: ModalityArrays) -> tuple[str, ...]:
    """Dimensions of one measurement of a modality, whose name in the file is `name`: `height_image`, ..."""
    rank = modality.decoded.ndim - 1
    axes = _AXES[modality.kind]
    if rank != len(axes):
        axes = tuple(f"axis{index}" for index in range(rank))
    return tuple(f"{axis}_{name}" for axis in axes)


def outcome_dimensions(graph: GraphArrays) -> tuple[str, ...]:
    """Dimension of the outcomes of each node: `outcome_type`, ..."""
    names = variable_names(graph.node_names)
    return tuple(f"outcome_{names[node]}" for node in graph.node_names)


def cell_names(graph: GraphArrays) -> list[str]:
    """Label of each cell, row-major: the names of its outcomes with commas between."""
    return [",".join(cell) for cell in product(*graph.outcome_names)]


# Units and positions, as attributes and coordinates in the file.


Coordinate = tuple[tuple[str, ...], np.ndarray, dict[str, str]]
"""Dimensions, values and attributes."""

# With these in `units`, older versions of xarray and other readers take numbers for durations.
_TIME_WORDS = ("days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds")


def unit_attributes(unit: str) -> dict[str, str]:
    """Attributes that give a unit: `units`, or `unit` where readers would take numbers for dates or durations."""
    if not unit:
        return {}
    is_time = unit in _TIME_WORDS or " since " in unit
    return {"unit" if is_time else "units": unit}


def modality_attributes(modality: ModalityArrays) -> dict[str, str]:
    """Unit of the values, and likelihood and transform under which they were modelled; strings only."""
    return {**unit_attributes(modality.unit), "likelihood": modality.likelihood, "transform": modality.transform}


def position_coords(variable: str, modality: ModalityArrays) -> dict[str, Coordinate]:
    """The positions of a curve, with their name and unit; nothing for other kinds."""
    dims = axis_names(variable, modality)
    if modality.axis is None or len(dims) != 1:
        return {}
    attributes = {"long_name": modality.axis.name, **unit_attributes(modality.axis.unit)}
    return {dims[0]: (dims, np.asarray(modality.axis.values, dtype=np.float64), attributes)}
