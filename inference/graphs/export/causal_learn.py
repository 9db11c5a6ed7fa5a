"""Graphs of causal-learn, whose matrix has the mark at the end of an edge: -1 a tail, 1 a head."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.graphs.export.graph import ExportedGraph

__all__ = ["from_causal_learn", "to_causal_learn"]

_TAIL, _HEAD = -1, 1


def to_causal_learn(graph: ExportedGraph) -> Any:
    """A `causallearn.graph.GeneralGraph`; lines are edges with two tails.

    In its matrix entry `[j, i]` is the mark at j of the edge between i and j: i -> j is `[j, i] = 1`, `[i, j] = -1`.
    Here rows are causes; there they are not, which this function takes care of.

    Raises:
        ValueError: causal-learn is not installed.
    """
    try:
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    except ImportError as error:
        raise ValueError("causal-learn: expected it to be installed, got none; pip install causal-learn") from error
    nodes = [GraphNode(name) for name in graph.nodes]
    found = GeneralGraph(nodes)
    for edge in graph.edges():
        end = Endpoint.ARROW if edge.is_directed else Endpoint.TAIL
        found.add_edge(Edge(nodes[edge.cause], nodes[edge.effect], Endpoint.TAIL, end))
    return found


def from_causal_learn(graph: Any) -> ExportedGraph:
    """Nodes and edges of a `GeneralGraph` without open marks (circles).

    Raises:
        ValueError: It has other marks than tails and heads, or two heads.
    """
    marks = np.asarray(graph.graph)
    head, tail = marks == _HEAD, marks == _TAIL
    if ((marks != 0) & ~head & ~tail).any() or (head & head.T).any():
        raise ValueError("graph: expected arrows and lines, got circles or two heads; that is no class of DAGs")
    # A mark of a head at j, in row j, is an edge i -> j.
    return ExportedGraph(tuple(graph.get_node_names()), (), (head.T | (tail & tail.T)).astype(np.int64))
