"""The one graph of a summary that figure, table and report show, with no more directions than were identified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from inference.results.edge_findings import between, joined_pairs
from inference.results.meaning import is_named
from inference.results.search_findings import causal_graph_sentence
from inference.results.text import printable

__all__ = ["Basis", "ShownEdge", "ShownGraph", "interventional_graph", "shown_graph"]

Summary = Mapping[str, Any]
Basis = Literal["interventions", "class", "strengths"]
_SURE = 0.95


class ShownEdge(NamedTuple):
    """A pair of nodes that is joined; the arrow, where there is one, runs from the first to the second."""

    first: int
    second: int
    is_directed: bool
    bits: float | None
    strength: float | None = None


class ShownGraph(NamedTuple):
    """Nodes, edges, and what they rest on.

    Attributes:
        names: Of the nodes.
        edges: Lines run from the node that comes first.
        basis: `interventions`: the best graph that these tell, with an arrow where the graphs with the edge that way
            round have at least 95 % of the weight of those that have it. `class`: the equivalence class of the exact
            search, arrows where it is compelled. `strengths`: what was trained along, lines only.
    """

    names: tuple[str, ...]
    edges: tuple[ShownEdge, ...]
    basis: Basis


def shown_graph(summary: Summary) -> ShownGraph:
    """What to show of a finished fit: what interventions told, else the class, else the soft strengths."""
    graph = summary.get("graph", {})
    names = tuple(printable(name) for name in graph.get("node_names", ()))
    if is_named(summary) and causal_graph_sentence(summary):
        return ShownGraph(names, _edges(graph, interventional_graph(summary["labelling"]["details"])), "interventions")
    if is_named(summary) and graph.get("equivalence_class"):
        return ShownGraph(names, _edges(graph, np.array(graph["equivalence_class"]["cpdag"])), "class")
    pairs = [ShownEdge(i, j, False, between(graph, i, j), strength) for i, j, strength in joined_pairs(graph)]
    return ShownGraph(names, tuple(pairs), "strengths")


def interventional_graph(details: Mapping[str, Any]) -> np.ndarray:
    """The graph of the interventions, 1 both ways where they leave the direction of an edge open."""
    directed = np.array(details["graph"], dtype=bool)
    weight = np.array(details.get("edge_probability", directed), dtype=float)
    is_open = directed & (weight < _SURE * (weight + weight.T))
    both: np.ndarray = directed | is_open.T
    return both


def _edges(graph: Summary, matrix: np.ndarray) -> tuple[ShownEdge, ...]:
    is_line = (matrix != 0) & (matrix.T != 0)
    return tuple(
        ShownEdge(int(i), int(j), not is_line[i, j], between(graph, int(i), int(j)))
        for i, j in np.argwhere(matrix)
        if i < j or not is_line[i, j]
    )
