"""Which arrows of a class are declared and not found: what a reader has to be told beside every arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inference.graphs.cpdag import compelled, meek_closure, skeleton, v_structures
from inference.results.text import printable, shorten

__all__ = ["arrow_notes", "declared_arrows", "declared_sentence", "is_declared"]

_NAME_WIDTH = 24
_MOST_LISTED = 6

_BY_CLASS = "an arrow: directed by the class, assuming no hidden common cause and no selection"


def declared_arrows(graph: np.ndarray) -> np.ndarray:
    """Arrows that are there because something was declared of the graph; observations alone leave them open.

    Skeleton and v-structures of the class are those of its graphs with or without knowledge. By the rules of Meek
    (1995) they have the arrows that observations tell; all others need what was declared.

    Args:
        graph: `[L, L]` of 0 and 1, row = cause, column = effect, 1 both ways where the direction is open.

    Returns:
        bool `[L, L]`.
    """
    told = compelled(meek_closure(np.asarray(v_structures(graph).any(-1)), skeleton(graph)))
    declared: np.ndarray = compelled(graph) & ~told
    return declared


def arrow_notes(graph: Sequence[Sequence[int]], nodes: Sequence[str], arrow: str = "->") -> list[str]:
    """What the arrows of a class rest on: the class, what was declared, or both; empty where there is no arrow.

    Args:
        graph: As `declared_arrows` has it.
        nodes: Names.
        arrow: What stands between cause and effect.
    """
    matrix = np.array(graph, dtype=bool)
    declared = declared_arrows(matrix)
    found = [_BY_CLASS] if (compelled(matrix) & ~declared).any() else []
    if declared.any():
        names = [shorten(printable(name), _NAME_WIDTH) for name in nodes]
        edges = [f"{names[i]} {arrow} {names[j]}" for i, j in np.argwhere(declared)]
        found.append(f"directed by what was declared, not by the data: {_listed(edges)}")
    return found


def is_declared(posterior: Mapping[str, Any]) -> bool:
    """Whether something is known of the graph beforehand."""
    known = posterior.get("knowledge") or {}
    return bool(known.get("forbidden") or known.get("required"))


def declared_sentence(posterior: Mapping[str, Any]) -> str:
    """`Declared: not there alloy->treatment.`; empty where nothing was."""
    known = posterior.get("knowledge") or {}
    parts = [f"{word} {_listed(known[key])}" for key, word in _WORDS.items() if known.get(key)]
    return f"Declared: {'; '.join(parts)}." if parts else ""


_WORDS = {"forbidden": "not there", "required": "there"}


def _listed(edges: Sequence[str]) -> str:
    more = f" and {len(edges) - _MOST_LISTED} more" if len(edges) > _MOST_LISTED else ""
    return ", ".join(map(printable, edges[:_MOST_LISTED])) + more
