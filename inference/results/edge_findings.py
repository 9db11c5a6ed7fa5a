"""Soft strengths of the trained graph, and how much the nodes that they join say of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log
from typing import Any

from inference.results.text import is_number

__all__ = [
    "INDEPENDENT_BITS",
    "between",
    "information_text",
    "is_free",
    "joined_pairs",
]

INDEPENDENT_BITS = 0.01
"""Below this, nodes are practically independent."""


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
