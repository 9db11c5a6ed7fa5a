r"""Graphs drawn from their posterior exactly, layer by layer, out of the sums of Tian and He.

After the layers up to U, of which the last but one ended at U', the next one is R with probability in proportion to

$$\prod_{j \in R} [A_j(U) - A_j(U')] \; D_U(R), \qquad
D_U(R) = \sum_{T \subseteq V \setminus (U \cup R)} (-1)^{|T|} B(U \cup R \cup T) \prod_{i \in T} A_i(U):$$

the nodes of R have a parent after U', and of the others none can do with parents in U (A and B as in `exact_sums`; the
idea is that of Talvitie, Vuoksenmaa and Koivisto 2019, UAI). Then every node draws its parents.
"""

from __future__ import annotations

import numpy as np

from inference.graphs.exact_sums import GraphSums
from inference.graphs.layered_graphs import draw_dags
from inference.graphs.subsets import count_nodes, members

__all__ = ["draw_exactly", "draw_layers"]


def draw_exactly(sums: GraphSums, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Independent graphs from the posterior, `[draw, L, L]`.

    Args:
        sums: What `graph_sums` found.
        n_draws: How many.
        generator: Source of chance.
    """
    return draw_dags(sums.scores, draw_layers(sums, n_draws, generator), generator)


def draw_layers(sums: GraphSums, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Layer of every node in independent graphs from the posterior, `[draw, L]`.

    Args:
        sums: What `graph_sums` found.
        n_draws: How many.
        generator: Source of chance.
    """
    layers = np.zeros((n_draws, len(sums.scores)), dtype=np.int64)
    open_draws = [(0, 0, 0, np.arange(n_draws))]
    while open_draws:
        depth, before, now, rows = open_draws.pop()
        nodes, mass = _next_layers(sums, before, now, depth)
        chosen = np.searchsorted(mass, generator.random(len(rows)) * mass[-1], side="right")
        for choice in np.unique(chosen).tolist():
            these = rows[chosen == choice]
            added = nodes[members(np.array(choice), len(nodes))]
            layers[np.ix_(these, added)] = depth
            union = now | int((1 << added).sum())
            if union < sums.scores.shape[1] - 1:
                open_draws.append((depth + 1, now, union, these))
    return layers


def _next_layers(sums: GraphSums, before: int, now: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes that are left, and the running sum of the weights of every set of them as the next layer."""
    nodes = np.flatnonzero(~members(np.array(now), len(sums.scores)))
    within = sums.log_within[nodes, now]
    unions, terms = np.array([now]), np.zeros(1)
    for node, log_sum in zip(nodes, within, strict=True):
        unions, terms = np.concatenate([unions, unions | 1 << node]), np.concatenate([terms, terms + log_sum])
    weights = _without_others(np.exp(terms + sums.log_after[unions] - sums.log_after[now]))
    if depth:
        with np.errstate(invalid="ignore"):
            new = -np.expm1(sums.log_within[nodes, before] - within)
        weights = weights * _products(np.where(within > -np.inf, new, 0.0))
    return nodes, np.cumsum(np.maximum(weights, 0.0))


def _without_others(terms: np.ndarray) -> np.ndarray:
    """Sum over all supersets S of R with the sign of |S - R|."""
    found = terms.copy()
    for bit in range(count_nodes(terms)):
        halves = found.reshape(-1, 2, 1 << bit)
        halves[:, 0] -= halves[:, 1]
    found[0] = 0.0
    return found


def _products(factors: np.ndarray) -> np.ndarray:
    products = np.ones(1)
    for factor in factors:
        products = np.concatenate([products, products * factor])
    return products
