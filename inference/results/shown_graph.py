"""The one graph of a summary that figure, table and report show, with no more directions than were identified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from inference.graphs.edge_text import read_edge
from inference.results.edge_findings import between, joined_pairs
from inference.results.interventional_graph import interventional_graph
from inference.results.meaning import is_named
from inference.results.posterior_findings import DOUBTFUL
from inference.results.search_findings import causal_graph_sentence
from inference.results.text import printable

__all__ = ["Basis", "ShownEdge", "ShownGraph", "shown_graph"]

Summary = Mapping[str, Any]
Basis = Literal["given", "interventions", "class", "strengths"]


class ShownEdge(NamedTuple):
    """A pair of nodes that is joined; the arrow, where there is one, runs from the first to the second.

    `bits`: their mutual information; `probability`: that they are joined, by the posterior over graphs; None where
    these are not known.
    """

    first: int
    second: int
    is_directed: bool
    bits: float | None
    strength: float | None = None
    probability: float | None = None


class ShownGraph(NamedTuple):
    """Nodes, edges, and what they rest on.

    Attributes:
        names: Of the nodes.
        edges: Lines run from the node that comes first.
        basis: `given`: the graph that the fit was told. `interventions`: the best graph that these tell, with an arrow
            where the graphs with the edge that way round have at least 95 % of the weight of those that have it.
            `class`: the most probable class of the posterior, else the best by exact search, arrows where it is
            compelled. `strengths`: what was trained along, lines only.
        doubtful: Pairs that the class does not join, and that are joined with a probability of at least 5 %.
    """

    names: tuple[str, ...]
    edges: tuple[ShownEdge, ...]
    basis: Basis
    doubtful: tuple[ShownEdge, ...] = ()

    def matrix(self) -> list[list[int]]:
        """`[L, L]`, row = cause, column = effect, 1 both ways where an edge has no direction."""
        found = [[0] * len(self.names) for _ in self.names]
        for edge in self.edges:
            found[edge.first][edge.second] = 1
            found[edge.second][edge.first] = int(not edge.is_directed)
        return found


def shown_graph(summary: Summary) -> ShownGraph:
    """What to show: the graph that was given, else what interventions told, else the class, else the soft strengths."""
    graph = summary.get("graph", {})
    names = tuple(printable(name) for name in graph.get("node_names", ()))
    if is_named(summary) and graph.get("given") is not None:
        return ShownGraph(names, _edges(graph, _given(graph), _joined(graph)), "given")
    if is_named(summary) and causal_graph_sentence(summary):
        return ShownGraph(names, _edges(graph, interventional_graph(summary["labelling"]["details"])), "interventions")
    matrix = _class(graph)
    if is_named(summary) and matrix is not None:
        return ShownGraph(names, _edges(graph, matrix, _joined(graph)), "class", _doubtful(graph, matrix))
    pairs = [ShownEdge(i, j, False, between(graph, i, j), strength) for i, j, strength in joined_pairs(graph)]
    return ShownGraph(names, tuple(pairs), "strengths")


def _given(graph: Summary) -> np.ndarray:
    """The graph that the fit was told, `[L, L]`."""
    nodes = graph["node_names"]
    matrix = np.zeros((len(nodes), len(nodes)), dtype=int)
    for text in graph["given"]:
        cause, effect = read_edge("graph.given", text, nodes)
        matrix[nodes.index(cause), nodes.index(effect)] = 1
    return matrix


def _class(graph: Summary) -> np.ndarray | None:
    """The class that is shown, `[L, L]`; the posterior's `cpdag` is that of its best graph, which may be another."""
    if graph.get("posterior"):
        return np.array(graph["posterior"]["classes"][0]["cpdag"])
    searched = graph.get("equivalence_class")
    return np.array(searched["cpdag"]) if searched else None


def _joined(graph: Summary) -> np.ndarray | None:
    """Probability that two nodes are joined, `[L, L]`, where there is a posterior."""
    found = graph.get("posterior")
    return np.array(found["adjacency_probability"], dtype=float) if found else None


def _doubtful(graph: Summary, matrix: np.ndarray) -> tuple[ShownEdge, ...]:
    joined = _joined(graph)
    if joined is None:
        return ()
    pairs = np.argwhere(np.triu((joined >= DOUBTFUL) & (matrix == 0) & (matrix.T == 0), 1))
    return tuple(ShownEdge(int(i), int(j), False, None, None, float(joined[i, j])) for i, j in pairs)


def _edges(graph: Summary, matrix: np.ndarray, joined: np.ndarray | None = None) -> tuple[ShownEdge, ...]:
    is_line = (matrix != 0) & (matrix.T != 0)
    return tuple(
        ShownEdge(
            int(i),
            int(j),
            not is_line[i, j],
            between(graph, int(i), int(j)),
            probability=None if joined is None else float(joined[i, j]),
        )
        for i, j in np.argwhere(matrix)
        if i < j or not is_line[i, j]
    )
