"""Names of variables, dimensions and coordinates in the exported file."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from causalpima.inference.findings.arrays import GraphArrays, ModalityArrays

__all__ = [
    "SAMPLE_ID",
    "TOTAL",
    "axis_names",
    "cell_names",
    "outcome_dimensions",
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
