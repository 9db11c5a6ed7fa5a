"""Edges of the learned graph, and how much the nodes that they join say of each other."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import Any, NamedTuple

from inference.results.text import format_number, is_number, printable

__all__ = ["INDEPENDENT_BITS", "Edge", "dependence_sentence", "edge_numbers", "edges", "information_text"]

INDEPENDENT_BITS = 0.01
"""Below this, nodes are practically independent."""


class Edge(NamedTuple):
    """An edge of the graph, from cause to effect; None for the mutual information where it is not known."""

    cause: str
    effect: str
    strength: float
    bits: float | None = None


def edges(summary: Mapping[str, Any]) -> list[Edge]:
    """Edges of strength above 0.5, strongest first."""
    graph = summary.get("graph", {})
    names = [printable(name) for name in graph.get("node_names", ())]
    found = [
        Edge(names[i], names[j], float(strength), _bits(graph, i, j))
        for i, row in enumerate(graph.get("edge_strength", ()))
        for j, strength in enumerate(row)
        if is_number(strength) and strength > 0.5
    ]
    return sorted(found, key=lambda edge: -edge.strength)


def _bits(graph: Mapping[str, Any], cause: int, effect: int) -> float | None:
    """Mutual information of two nodes; runs of earlier versions have none."""
    table = graph.get("mutual_information")
    nats = table[cause][effect] if table else None
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
        "An edge of strength near 1 says nothing of how strong the dependence is: "
        f"nodes that share under {INDEPENDENT_BITS} bit are practically independent."
    )
