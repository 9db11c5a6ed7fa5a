"""Graphs of networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np

from inference.graphs.export.graph import ORIENTATION, ExportedGraph

__all__ = ["from_networkx", "to_networkx"]


def to_networkx(graph: ExportedGraph) -> nx.DiGraph:
    """A `networkx.DiGraph`; a line is there both ways, with `directed=False`.

    Nodes have `outcomes`, and where p(N) is known `parents` and `table`, p(node | parents) as nested lists. Edges have
    `directed` and what is known of `probability` (of this direction), `adjacency_probability`, `compelled_probability`
    and `strength`. The graph has `orientation`, `note` and `named`.
    """
    found = nx.DiGraph(orientation=ORIENTATION, note=graph.note, named=graph.is_named)
    for node, name in enumerate(graph.nodes):
        found.add_node(name, **_of_node(graph, node))
    for i, j in np.argwhere(graph.graph):
        edge = graph.edge(int(i), int(j))
        found.add_edge(graph.nodes[i], graph.nodes[j], directed=edge.is_directed, **edge.numbers())
    return found


def _of_node(graph: ExportedGraph, node: int) -> dict[str, object]:
    outcomes: dict[str, object] = {"outcomes": list(graph.outcomes[node])} if graph.outcomes else {}
    if graph.joint is None:
        return outcomes
    parents = [graph.nodes[parent] for parent in graph.parents(node)]
    return {**outcomes, "parents": parents, "table": graph.table(node).tolist()}


def from_networkx(graph: nx.DiGraph) -> ExportedGraph:
    """Nodes, outcomes and edges of a `networkx.DiGraph`; an edge both ways is a line."""
    nodes = tuple(map(str, graph.nodes))
    outcomes = tuple(tuple(data.get("outcomes", ())) for _, data in graph.nodes(data=True))
    matrix = nx.to_numpy_array(graph, weight=None).astype(np.int64)
    return ExportedGraph(
        nodes,
        outcomes if all(outcomes) else (),
        matrix,
        note=str(graph.graph.get("note", "")),
        is_named=bool(graph.graph.get("named", True)),
    )
