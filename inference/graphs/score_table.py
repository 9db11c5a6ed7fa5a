"""Tables of local scores: the score of every node with every set of parents."""

from __future__ import annotations

import numpy as np

from inference.graphs.subsets import members, parent_sets

__all__ = ["MOST_COLUMNS", "check_scores", "dag_scores", "with_edge_prior"]

MOST_COLUMNS = 20
"""Nodes that a table can have: 20 nodes are 168 MB."""


def check_scores(scores: np.ndarray) -> None:
    """Refuse what is no table of local scores.

    Args:
        scores: `[L, 2^L]`; bit k of the second index: node k is a parent; -inf: not allowed.

    Raises:
        ValueError: Another shape, too many nodes, NaN or +inf, a node among its own parents, or one with no parents
            that are allowed.
    """
    n_nodes = len(scores)
    if scores.ndim != 2 or not 1 <= n_nodes <= MOST_COLUMNS or scores.shape[1] != 2**n_nodes:
        raise ValueError(
            f"scores: expected [L, 2^L] with L from 1 to {MOST_COLUMNS}, got {scores.shape}; a row per node, a column "
            "per set of parents"
        )
    if np.isnan(scores).any() or (scores == np.inf).any():
        raise ValueError("scores: expected numbers or -inf, got NaN or +inf; -inf stands for what is not allowed")
    own = members(np.arange(2**n_nodes), n_nodes).T
    if (scores[own] > -np.inf).any():
        raise ValueError("scores: expected -inf where a node is its own parent, got a number; set it to -inf")
    if (scores.max(1) == -np.inf).any():
        node = int(np.argmax(scores.max(1) == -np.inf))
        raise ValueError(f"scores: expected parents that are allowed, got none for node {node}; require fewer edges")


def dag_scores(scores: np.ndarray, dags: np.ndarray) -> np.ndarray:
    """Score of every graph, the sum over its nodes, in nats `[G]`; -inf where a set of parents is not allowed.

    Args:
        scores: `[L, 2^L]`.
        dags: `[G, L, L]`, row = cause, column = effect.
    """
    total: np.ndarray = scores[np.arange(len(scores)), parent_sets(dags)].sum(-1)
    return total


def with_edge_prior(scores: np.ndarray, log_odds: float | np.ndarray) -> np.ndarray:
    r"""Scores under a prior $p(G) \propto \exp \sum_{i \to j} o_{ij}$ instead of the uniform one.

    Args:
        scores: `[L, 2^L]`.
        log_odds: o of every edge, or `[L, L]`, row = cause; 0 is the uniform prior, negative prefers fewer edges.

    Raises:
        ValueError: `log_odds` is not finite, or has another shape.
    """
    n_nodes = len(scores)
    odds = np.asarray(log_odds, dtype=float)
    if odds.shape not in {(), (n_nodes, n_nodes)} or not np.isfinite(odds).all():
        raise ValueError(
            f"log_odds: expected finite numbers, one or [{n_nodes}, {n_nodes}], got {odds.shape}; a row per cause"
        )
    every = np.broadcast_to(odds, (n_nodes, n_nodes))
    return np.asarray(scores + (members(np.arange(2**n_nodes), n_nodes) @ every).T)
