"""Soft strengths of the trained graph, and how much the nodes that they join say of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log
from typing import Any, NamedTuple

from inference.results.text import format_number, is_number, printable

__all__ = [
    "INDEPENDENT_BITS",
    "Edge",
    "between",
    "dependence_sentence",
    "edge_numbers",
    "edges",
    "information_text",
    "is_free",
    "joined_pairs",
    "strengths_in_words",
]

INDEPENDENT_BITS = 0.01
"""Below this, nodes are practically independent."""


class Edge(NamedTuple):
    """Two nodes that are joined, in the order of the nodes: the order says nothing of a direction.

    `bits` is their mutual information under p(N), None where it is not known.
    """

    first: str
    second: str
    strength: float
    bits: float | None = None


def edges(summary: Mapping[str, Any]) -> list[Edge]:
    """Pairs of strength above 0.5, whichever way round, strongest first."""
    graph = summary.get("graph", {})
    names = [printable(name) for name in graph.get("node_names", ())]
    found = [Edge(names[i], names[j], s, between(graph, i, j)) for i, j, s in joined_pairs(graph) if s > 0.5]
    return sorted(found, key=lambda edge: -edge.strength)


def strengths_in_words(graph: Mapping[str, Any], which: str = "") -> str:
    """What the numbers in `edge_strength` are; a hard graph, with 1 or 0, is told by its temperature 0."""
    is_hard = graph.get("temperature") == 0
    return "edges of the trained model's hard graph" if is_hard else f"soft strengths{which} of the trained model"


def joined_pairs(graph: Mapping[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Every pair i < j with the larger of E_ij and E_ji; pairs without a finite number are left out."""
    table = graph.get("edge_strength", ())
    for i in range(len(table)):
        for j in range(i + 1, len(table)):
            strengths = [float(value) for value in (table[i][j], table[j][i]) if is_number(value)]
            if strengths:
                yield i, j, max(strengths)


def is_free(graph: Mapping[str, Any]) -> bool:
    """Whether p(N) has a weight of its own for every cell and no graph, so that edges have no strength."""
    table = graph.get("edge_strength", ())
    return len(table) > 1 and not any(is_number(value) for row in table for value in row)


def between(graph: Mapping[str, Any], first: int, second: int) -> float | None:
    """Mutual information of two nodes in bits; None where it is not known."""
    table = graph.get("mutual_information")
    nats = table[first][second] if table else None
    return float(nats) / log(2) if nats is not None and is_number(nats) else None


def information_text(bits: float) -> str:
    """`0.53 bit`, or that it is practically nothing."""
    return f"{bits:.2f} bit" if bits >= INDEPENDENT_BITS else f"< {INDEPENDENT_BITS} bit"


def edge_numbers(edge: Edge) -> str:
    """Strength, and the mutual information of the two nodes where it is known: `0.98 (0.53 bit)`."""
    strength = format_number(edge.strength, 2)
    return strength if edge.bits is None else f"{strength} ({information_text(edge.bits)})"


def dependence_sentence(summary: Mapping[str, Any]) -> str:
    """That a strong edge may join independent nodes; empty where none does."""
    if all(edge.bits is None or edge.bits >= INDEPENDENT_BITS for edge in edges(summary)):
        return ""
    return (
        "A strength near 1 says nothing of how strong the dependence is: "
        f"nodes that share under {INDEPENDENT_BITS} bit are practically independent."
    )
