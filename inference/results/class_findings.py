"""What a summary says of the equivalence class that exact search found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from inference.results.search_findings import causal_graph_sentence
from inference.results.text import format_number, printable, shorten

__all__ = ["class_sentence", "edges_heading"]

_NAME_WIDTH = 24
_TIE = 1e-3


def class_sentence(summary: Mapping[str, Any], arrow: str = "->", back: str = "<-", line: str = "--") -> str:
    """The class, drawn along its edges, and how sure it is; empty where it was not searched.

    Args:
        summary: The summary.
        arrow: What stands between a cause and its effect.
        back: The same, the other way round.
        line: What stands where the direction is open.
    """
    found = _class(summary)
    if not found:
        return ""
    graph = np.array(found["cpdag"], dtype=bool)
    names = [shorten(printable(name), _NAME_WIDTH) for name in found["node_names"]]
    signs = np.array([["", back], [arrow, line]])[graph.astype(int), graph.T.astype(int)]
    drawn = ", ".join(_drawn(path, names, signs) for path in _paths(graph | graph.T))
    alone = " by observations alone" if causal_graph_sentence(summary) else ""
    note = f"; a line: direction not identified{alone}" if (graph & graph.T).any() else ""
    return f"Equivalence class by exact search (BIC): {drawn or 'no edge'}; {_ahead(found['gap_nats'])}{note}."


def _drawn(path: Sequence[int], names: Sequence[str], signs: np.ndarray) -> str:
    return " ".join([names[path[0]], *(f"{signs[i, j]} {names[j]}" for i, j in pairwise(path))])


def _ahead(gap: float) -> str:
    return "another is as good" if gap < _TIE else f"{format_number(gap, 1)} nats ahead of the next"


def edges_heading(summary: Mapping[str, Any]) -> str:
    """What the listed edges are: beside a class that was searched, not the graph, but what was trained along."""
    if not _class(summary) or causal_graph_sentence(summary):
        return "Edges above 0.5"
    return "Soft strengths above 0.5 of the graph that was trained along (no test of an edge)"


def _class(summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = summary.get("graph", {}).get("equivalence_class")
    return found


def _paths(joined: np.ndarray) -> list[list[int]]:
    """Every edge once, along as long walks as one comes by, from the ends of chains first."""
    left, paths = joined.copy(), []
    while left.any():
        degree = left.sum(1)
        path = [int(min(np.flatnonzero(degree), key=lambda node: (degree[node] % 2 == 0, node)))]
        while left[path[-1]].any():
            after = int(left[path[-1]].argmax())
            left[path[-1], after] = left[after, path[-1]] = False
            path.append(after)
        paths.append(path)
    return paths
