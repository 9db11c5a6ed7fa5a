"""What the graph of a run says, in one clause, with how probable it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inference.results.certainty import gap_text
from inference.results.class_findings import Signs, drawn_class
from inference.results.declared_arrows import declared_arrows, is_declared
from inference.results.shown_graph import ShownGraph, shown_graph
from inference.results.text import format_number, printable

__all__ = ["SIGNS", "graph_clause", "posterior_method"]

Summary = Mapping[str, Any]

_SURE = 0.99
_ASSUMPTIONS = "; an arrow assumes that there is no hidden common cause and no selection"

SIGNS = Signs("→", "←", "—")
"""What stands between two nodes on a page."""


def graph_clause(summary: Summary) -> str:
    """The graph and its certainty, of nodes that have a meaning."""
    graph, found = summary.get("graph", {}), shown_graph(summary)
    if len(graph.get("node_names", ())) == 1:
        return "there is one node, and so no graph"
    if found.basis == "given":
        return f"the graph was given, not found: {_drawn(found)}"
    if found.basis == "interventions":
        return f"by the interventions the graph is {_drawn(found)}{_ASSUMPTIONS}"
    if graph.get("posterior"):
        return _most_probable(graph["posterior"])
    if graph.get("equivalence_class"):
        return _best(graph["equivalence_class"])
    return "no graph was searched for"


def _best(found: Summary) -> str:
    """The class that an exact search found, and how far it is ahead."""
    ahead, rests = gap_text(found.get("gap_nats")), _assumed(found["cpdag"], found["node_names"])
    drawn = drawn_class(found["cpdag"], found["node_names"], SIGNS)
    return f"the best class of graphs is {drawn}{f' ({ahead})' if ahead else ''}{rests}"


def _assumed(graph: Sequence[Sequence[int]], nodes: Sequence[str]) -> str:
    """What an arrow rests on; empty where there is none."""
    matrix = np.array(graph, dtype=bool)
    declared = declared_arrows(matrix)
    arrows = [f"{printable(nodes[i])} {SIGNS.arrow} {printable(nodes[j])}" for i, j in np.argwhere(declared)]
    told = f"; the direction of {', '.join(arrows)} was declared, the data leave it open" if arrows else ""
    return (_ASSUMPTIONS if (matrix & ~matrix.T & ~declared).any() else "") + told


def _most_probable(posterior: Summary) -> str:
    """The class with the largest probability, and how its graphs were scored."""
    best = posterior["classes"][0]
    drawn = drawn_class(best["cpdag"], posterior["nodes"], SIGNS)
    probability = _probability(best["probability"])
    among = (
        "all classes of graphs that agree with what was declared" if is_declared(posterior) else "all classes of graphs"
    )
    rests = f"({posterior_method(posterior)}){_assumed(best['cpdag'], posterior['nodes'])}"
    return f"{drawn} has probability {probability} among {among} {rests}"


def _probability(value: float) -> str:
    return "above 0.99" if value > _SURE else format_number(value, 2)


def posterior_method(posterior: Summary) -> str:
    """`BDeu, equivalent sample size 1`, or `BIC`."""
    name = {"bic": "BIC", "bdeu": "BDeu"}.get(str(posterior.get("score")), printable(posterior.get("score", "")))
    size = posterior.get("equivalent_sample_size")
    return name if size is None else f"{name}, equivalent sample size {size:g}"


def _drawn(found: ShownGraph) -> str:
    return drawn_class(found.matrix(), found.names, SIGNS)
