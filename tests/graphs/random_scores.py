"""Tables of local scores that come from nowhere, and what brute force over all graphs makes of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causalpima.inference.graphs.dags import all_dags
from causalpima.inference.graphs.scores import members, score_of_dag


class BruteForce(NamedTuple):
    """All graphs, one by one."""

    dags: np.ndarray
    scores: np.ndarray
    probability: np.ndarray
    log_total: float


def random_scores(n_nodes: int, scale: float, seed: int, refused: float = 0.0) -> np.ndarray:
    """`[L, 2^L]`, normal; a share of all sets of parents but the empty one is refused."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(-700.0, scale, size=(n_nodes, 2**n_nodes))
    scores[:, 1:][generator.random((n_nodes, 2**n_nodes - 1)) < refused] = -np.inf
    return without_own(scores)


def flat_scores(n_nodes: int) -> np.ndarray:
    """0 for every graph."""
    return without_own(np.zeros((n_nodes, 2**n_nodes)))


def without_own(scores: np.ndarray) -> np.ndarray:
    return np.where(members(np.arange(scores.shape[1]), len(scores)).T, -np.inf, scores)


def brute_force(scores: np.ndarray) -> BruteForce:
    dags = all_dags(len(scores))
    values = np.array([score_of_dag(scores, dag) for dag in dags])
    total = float(np.logaddexp.reduce(values))
    return BruteForce(dags, values, np.exp(values - total), total)
