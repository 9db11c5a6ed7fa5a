"""What a summary says of the equivalence class that exact search found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from inference.results.certainty import UNDECIDED_NATS, gap_text
from inference.results.declared_arrows import arrow_notes
from inference.results.search_findings import causal_graph_sentence
from inference.results.text import format_number, printable, shorten

__all__ = ["Signs", "class_sentence", "drawn_class"]

_NAME_WIDTH = 24
_MOST_NEAR = 4


class Signs(NamedTuple):
    """What stands between two nodes: an arrow, the same the other way round, a line where the direction is open."""

    arrow: str = "->"
    back: str = "<-"
    line: str = "--"


def class_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """The class, drawn along its edges, and how sure it is; empty where it was not searched."""
    found = summary.get("graph", {}).get("equivalence_class")
    if not found:
        return ""
    drawn = drawn_class(found["cpdag"], found["node_names"], signs or Signs())
    ahead = gap_text(found["gap_nats"])
    notes = "".join(f"; {note}" for note in (ahead, *_notes(summary, found, signs or Signs())) if note)
    searched = f"Equivalence class by exact search (BIC): {drawn}{notes}.{_near(found, signs or Signs())}"
    return f"{_given(summary)}{searched}"


def _given(summary: Mapping[str, Any]) -> str:
    """The graph that the fit was told; what was searched does not use it."""
    edges = summary["graph"].get("given")
    if edges is None:
        return ""
    told = ", ".join(map(printable, edges)) or "no edge"
    return f"p(N) has the graph that was given: {told}. Searched without regard to it: "


def _notes(summary: Mapping[str, Any], found: Mapping[str, Any], signs: Signs) -> Iterator[str]:
    graph = np.array(found["cpdag"], dtype=bool)
    if (graph & graph.T).any():
        yield "a line: direction not identified" + (" by observations alone" if causal_graph_sentence(summary) else "")
    yield from arrow_notes(found["cpdag"], found["node_names"], signs.arrow)


def _near(found: Mapping[str, Any], signs: Signs) -> str:
    """Which other classes are not decided against."""
    near = found.get("near") or []
    if not near:
        return ""
    listed = "; ".join(
        f"{drawn_class(rival['cpdag'], found['node_names'], signs)} ({format_number(rival['behind_nats'], 1)} behind)"
        for rival in near[:_MOST_NEAR]
    )
    more = f"; and {len(near) - _MOST_NEAR} more" if len(near) > _MOST_NEAR else ""
    return f" Within {UNDECIDED_NATS:.0f} nats: {listed}{more}."


def drawn_class(cpdag: Sequence[Sequence[int]], nodes: Sequence[str], signs: Signs) -> str:
    """All edges along as long walks as one comes by: `hue -> shift <- radius`; `no edge` where there is none."""
    graph = np.array(cpdag, dtype=bool)
    names = [shorten(printable(name), _NAME_WIDTH) for name in nodes]
    table = np.array([["", signs.back], [signs.arrow, signs.line]])[graph.astype(int), graph.T.astype(int)]
    return ", ".join(_walk(path, names, table) for path in _paths(graph | graph.T)) or "no edge"


def _walk(path: Sequence[int], names: Sequence[str], signs: np.ndarray) -> str:
    return " ".join([names[path[0]], *(f"{signs[i, j]} {names[j]}" for i, j in pairwise(path))])


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
