"""Tables of the graph on the page: probabilities of edges and classes, and conditional tables along the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from inference.graphs.tables import conditional_table, member_of, parents_of
from inference.results.class_findings import drawn_class
from inference.results.meaning import is_named
from inference.results.page.headline_graph import SIGNS, posterior_method
from inference.results.page.parts import Table
from inference.results.posterior_findings import short_pairs
from inference.results.shown_graph import shown_graph
from inference.results.text import format_number, printable, shorten

__all__ = ["conditional_tables", "posterior_tables"]

Summary = Mapping[str, Any]

_NAME_WIDTH = 24
_MOST_ROWS = 32
_MOST_CLASSES = 8


def posterior_tables(summary: Summary) -> list[Table]:
    """Probabilities of edges, then of classes; none without a posterior."""
    posterior = summary.get("graph", {}).get("posterior")
    if not posterior:
        return []
    return [_edges(posterior), *_classes(posterior)]


def _edges(posterior: Summary) -> Table:
    """A row per pair, the most probably joined first."""
    names = [shorten(printable(name), _NAME_WIDTH) for name in posterior["nodes"]]
    directed, joined = (np.array(posterior[f"{kind}_probability"], dtype=float) for kind in ("edge", "adjacency"))
    sure = np.array(posterior["compelled_probability"], dtype=float)
    pairs = sorted(combinations(range(len(names)), 2), key=lambda pair: -joined[pair])
    short, nodes = short_pairs(posterior), posterior["nodes"]
    rows = [
        [f"{names[i]} — {names[j]}"]
        + (
            ["too few samples", *"––––"]
            if {nodes[i], nodes[j]} in short
            else [_two(x) for x in (joined[i, j], directed[i, j], directed[j, i], sure[i, j], sure[j, i])]
        )
        for i, j in pairs[:_MOST_ROWS]
    ]
    text = (
        f"Probabilities of edges ({posterior_method(posterior)}), uniform beforehand over the graphs that agree with "
        "what is known. An arrow runs from cause to effect. Compelled: so directed in all graphs of the class; what a "
        "direction has beyond that is the prior's."
    )
    head = ("pair", "joined", "first → second", "second → first", "compelled →", "compelled ←")
    return Table(text, head, rows)


def _two(value: float) -> str:
    return format_number(float(value), 2)


def _classes(posterior: Summary) -> list[Table]:
    classes = posterior.get("classes") or []
    rows = [
        [drawn_class(found["cpdag"], posterior["nodes"], SIGNS), format_number(found["probability"], 3)]
        for found in classes[:_MOST_CLASSES]
    ]
    more = f", the first {_MOST_CLASSES} of {len(classes)}" if len(classes) > _MOST_CLASSES else ""
    text = f"Classes of graphs that together carry 95 % of the probability{more}. —: direction not identified."
    return [Table(text, ("class", "probability"), rows)] if rows else []


def conditional_tables(summary: Summary, outcome_names: Sequence[Sequence[str]], log_joint: np.ndarray) -> list[Table]:
    """p(node | its causes) along a graph of the class that is shown; none where nodes have no meaning."""
    if not is_named(summary) or len(outcome_names) == 1 or shown_graph(summary).basis == "strengths":
        return []
    dag, joint = _dag(summary), np.exp(log_joint)
    return [_conditional(summary, outcome_names, joint, node, parents_of(dag, node)) for node in range(len(dag))]


def _dag(summary: Summary) -> np.ndarray:
    found = shown_graph(summary)
    mixed = np.zeros((len(found.names), len(found.names)), dtype=int)
    for edge in found.edges:
        mixed[edge.first, edge.second] = 1
        mixed[edge.second, edge.first] = int(not edge.is_directed)
    return member_of(mixed)


def _conditional(
    summary: Summary, outcome_names: Sequence[Sequence[str]], joint: np.ndarray, node: int, parents: Sequence[int]
) -> Table:
    nodes = [shorten(printable(name), _NAME_WIDTH) for name in summary["graph"]["node_names"]]
    names = [[shorten(printable(name), _NAME_WIDTH) for name in outcomes] for outcomes in outcome_names]
    table = conditional_table(joint, node, parents).reshape(-1, len(names[node]))
    given = list(product(*(names[parent] for parent in parents)))
    rows = [[", ".join(combination) or "-", *map(_three, row)] for combination, row in zip(given, table, strict=True)]
    of = ", ".join(nodes[parent] for parent in parents)
    more = f": the first {_MOST_ROWS} of {len(rows)} rows" if len(rows) > _MOST_ROWS else ""
    text = f"p({nodes[node]}{f' | {of}' if of else ''}){more}"
    return Table(text, (of or "", *(f"{nodes[node]} = {name}" for name in names[node])), rows[:_MOST_ROWS])


def _three(value: float) -> str:
    return format_number(float(value), 3)
