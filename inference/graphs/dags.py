"""Directed acyclic graphs over a few nodes, all of them at once."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

__all__ = ["MOST_NODES", "all_dags", "is_acyclic"]

MOST_NODES = 5
"""Up to so many nodes all graphs are listed: 1, 3, 25, 543, 29281."""


def is_acyclic(graph: np.ndarray) -> np.ndarray:
    """Whether no directed path leads back to where it began.

    Edges into nodes without effects are on no cycle; taken out until nothing changes, they leave none where there is no
    cycle.

    Args:
        graph: `[..., L, L]` of 0 and 1, row = cause, column = effect; an undirected edge (1 both ways) is a cycle.

    Returns:
        Bool `[...]`.
    """
    edges: np.ndarray = graph.astype(bool)
    for _ in range(graph.shape[-1]):
        left = edges & np.asarray(edges.any(-1))[..., None, :]
        if np.array_equal(left, edges):
            break
        edges = left
    return np.asarray(~edges.any((-2, -1)))


def all_dags(n_nodes: int) -> np.ndarray:
    """Every directed acyclic graph over labelled nodes, the empty one first.

    Args:
        n_nodes: Number of nodes, 1 to 5.

    Returns:
        `[graph, L, L]` of 0 and 1, row = cause, column = effect.

    Raises:
        ValueError: More nodes than can be listed, or none.
    """
    if not 1 <= n_nodes <= MOST_NODES:
        raise ValueError(f"n_nodes: expected 1 to {MOST_NODES}, got {n_nodes}; more graphs than can be listed")
    pairs = list(combinations(range(n_nodes), 2))
    states = np.array(list(product((0, 1, 2), repeat=len(pairs))), dtype=np.int8)
    graphs = np.zeros((len(states), n_nodes, n_nodes), dtype=np.int8)
    for column, (i, j) in enumerate(pairs):
        graphs[:, i, j], graphs[:, j, i] = states[:, column] == 1, states[:, column] == 2
    return graphs[is_acyclic(graphs)]
