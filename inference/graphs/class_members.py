"""The directed acyclic graphs of an equivalence class, or of what knowledge leaves of one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inference.graphs.cpdag import compelled, skeleton, v_structures
from inference.graphs.dags import is_acyclic

__all__ = ["MOST_MEMBERS", "class_members"]

MOST_MEMBERS = 5040
"""As many as a complete graph of seven nodes has."""


def class_members(graph: np.ndarray) -> np.ndarray:
    """Every DAG with the edges of a partially directed graph, its arrows, and no other v-structure than its own.

    Of a CPDAG these are the graphs of its class; of one with further arrows that are known (Meek 1995), those that
    agree with them.

    Args:
        graph: `[L, L]`, row = cause, column = effect, 1 both ways where the direction is open.

    Returns:
        `[member, L, L]` of 0 and 1; at least one.

    Raises:
        ValueError: It has no member, or more than 5040.
    """
    wanted = v_structures(graph)
    found: list[np.ndarray] = []
    for member in _directed(compelled(graph), _open_pairs(graph), skeleton(graph), wanted):
        found.append(member.astype(np.int8))
        if len(found) > MOST_MEMBERS:
            raise ValueError(f"graph: expected a class of at most {MOST_MEMBERS} graphs, got more; direct some edges")
    if not found:
        raise ValueError("graph: expected a class of directed acyclic graphs, got one without any; look at its arrows")
    return np.stack(found)


def _open_pairs(graph: np.ndarray) -> list[tuple[int, int]]:
    edges = graph.astype(bool)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(edges & edges.T))]


def _directed(
    arrows: np.ndarray, left: list[tuple[int, int]], joined: np.ndarray, wanted: np.ndarray
) -> Iterator[np.ndarray]:
    """All ways to direct what is left, given up as soon as a cycle or another v-structure appears."""
    if not bool(is_acyclic(arrows)) or (_colliders(arrows, joined) & ~wanted).any():
        return
    if not left:
        yield arrows
        return
    (i, j), *rest = left
    for start, end in ((i, j), (j, i)):
        more = arrows.copy()
        more[start, end] = True
        yield from _directed(more, rest, joined, wanted)


def _colliders(arrows: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """i → k ← j with i and j not joined in the end, bool `[i, k, j]`."""
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    both: np.ndarray = arrows[:, :, None] & arrows.T[None, :, :]
    return both & apart[:, None, :]
