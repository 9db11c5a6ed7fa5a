r"""Sums over all graphs under the uniform prior over graphs, exactly (Tian and He 2009, UAI).

With $w_j(P) = e^{s_j(P)}$ and $A_j(U) = \sum_{P \subseteq U} w_j(P)$, inclusion and exclusion over the nodes that were
added last (sinks of the graph over S; T is any set of them) and first (roots of the graph outside U) give

$$Z(S) = \sum_{\emptyset \ne T \subseteq S} (-1)^{|T|+1} Z(S \setminus T) \prod_{j \in T} A_j(S \setminus T),$$
$$B(U) = \sum_{\emptyset \ne T \subseteq V \setminus U} (-1)^{|T|+1} B(U \cup T) \prod_{j \in T} A_j(U),$$

the weight of all graphs over S, and that of all ways to give parents to the nodes outside U where no node in U has a
parent outside. $Z(V) = B(\emptyset)$. B is the derivative of Z(V) by Z(U), so that one pass back gives every
probability; and of all T that contain j only those graphs remain in which j is the one root outside U, that is, where U
is all that does not descend from j:

$$p(nd(j) = U) = \frac{Z(U)}{Z(V)} \sum_{T \ni j} (-1)^{|T|+1} B(U \cup T) \prod_{i \in T} A_i(U), \qquad
p(pa(j) = P) = w_j(P) \sum_{U \supseteq P} p(nd(j) = U) / A_j(U).$$

Each is a sum over `3^L` terms. The weight of the best graph over S (`optimum`) is the unit of Z(S), so that nothing
overflows; no term is larger than the sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from causalpima.inference.graphs.scores import (
    best_after,
    best_within,
    check_scores,
    count_nodes,
    log_sums_over_subsets,
    log_sums_over_supersets,
    maxima_over_subsets,
    members,
    outside,
    sets_by_size,
    subsets_of,
)

__all__ = [
    "GraphSums",
    "draw_dags",
    "draw_exactly",
    "draw_layers",
    "draw_parents",
    "graph_sums",
    "layers_of",
    "log_partition",
]


_TERMS_AT_ONCE = 2**20


@dataclass(frozen=True)
class GraphSums:
    """All graphs, summed; weights are relative to each node's best score, which `log_total` alone includes.

    Attributes:
        log_total: log of the sum over all graphs of exp(score), in nats.
        parent_set_probability: Of every node with every set of parents, `[L, 2^L]`.
        log_after: log B, `[2^L]`.
        log_within: log A, `[L, 2^L]`.
        scores: The scores less each node's best one, `[L, 2^L]`.
        rounding: How far the probabilities of some node's parents are from a sum of 1: the size of rounding errors.
    """

    log_total: float
    parent_set_probability: np.ndarray
    log_after: np.ndarray
    log_within: np.ndarray
    scores: np.ndarray
    rounding: float

    @property
    def edge_probability(self) -> np.ndarray:
        """p(i → j in the graph), `[L, L]`, row = cause."""
        sets = np.arange(self.scores.shape[1])
        found = members(sets, len(self.scores)).T.astype(float) @ self.parent_set_probability.T
        return np.clip(found, 0.0, 1.0)


def graph_sums(scores: np.ndarray) -> GraphSums:
    """Sum over all graphs, and the probability of every edge and every set of parents.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats; -inf: not allowed.

    Raises:
        ValueError: The table has another shape, or allows no graph.
    """
    unit, scores, within = _prepared(scores)
    best = maxima_over_subsets(scores)
    log_within = _forward(within, _finite(best_within(best)))
    if log_within[-1] == -np.inf:
        raise ValueError("scores: expected a table that allows a graph, got one without; require fewer edges")
    log_after, not_descending = _backward(within, _finite(best_after(best)), log_within)
    sums = log_sums_over_supersets(_log(not_descending) - np.where(within > -np.inf, within, 0.0))
    rounding = float(np.abs(not_descending.sum(1) - 1).max())
    return GraphSums(float(log_within[-1] + unit), np.exp(scores + sums), log_after, within, scores, rounding)


def log_partition(scores: np.ndarray) -> float:
    """log of the sum over all graphs of exp(score), in nats; of scores 0 the logarithm of the number of graphs.

    Args:
        scores: `[L, 2^L]`; -inf: not allowed.

    Raises:
        ValueError: The table has another shape.
    """
    unit, scores, within = _prepared(scores)
    return float(_forward(within, _finite(best_within(maxima_over_subsets(scores))))[-1] + unit)


def _prepared(scores: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of the best scores, the scores less them, and log A."""
    check_scores(scores)
    unit = scores.max(1)
    return float(unit.sum()), scores - unit[:, None], log_sums_over_subsets(scores - unit[:, None])


def _finite(best: np.ndarray) -> np.ndarray:
    """Where no graph is allowed any unit will do."""
    return np.where(best > -np.inf, best, 0.0)


def _forward(within: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """log Z(S), `[2^L]`."""
    log_sum, total = np.full(len(unit), -np.inf), np.zeros(len(unit))
    total[0] = 1.0
    for sets in sets_by_size(len(within)):
        log_sum[sets] = unit[sets] + _log(total[sets])
        for some, _, unions, products in _extensions(sets, within):
            terms = _signs(unions.shape[1]) * np.exp(log_sum[some, None] + products - unit[unions])
            total += np.bincount(unions.ravel(), terms.ravel(), len(total))
    return log_sum


def _backward(within: np.ndarray, unit: np.ndarray, log_sum: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log B(U), `[2^L]`, and p(nd(j) = U), `[L, 2^L]`."""
    log_after, sole = np.full(len(unit), -np.inf), np.zeros_like(within)
    log_after[-1] = 0.0
    for sets in reversed(sets_by_size(len(within))[:-1]):
        for some, nodes, unions, products in _extensions(sets, within):
            terms = _signs(unions.shape[1]) * np.exp(products + log_after[unions] - unit[some, None])
            log_after[some] = unit[some] + _log(terms.sum(1))
            share = np.exp(log_sum[some] + unit[some] - log_sum[-1])[:, None]
            having = members(np.arange(unions.shape[1]), nodes.shape[1]).astype(float)
            sole[nodes, some[:, None]] = np.maximum(share * (terms @ having), 0.0)
    return log_after, sole


def _extensions(
    sets: np.ndarray, within: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """For sets U of one size: U, the nodes outside, all U ∪ T, and the sum over T of log A_j(U), `[set, 2^(L - |U|)]`.

    Bit k of the second index: the k-th node outside is in T.
    """
    at_once = max(1, _TERMS_AT_ONCE * len(sets) // max(1, len(sets) << len(outside(sets[:1], len(within))[0])))
    for start in range(0, len(sets), at_once):
        some = sets[start : start + at_once]
        nodes = outside(some, len(within))
        unions, products = some[:, None], np.zeros((len(some), 1))
        for node in nodes.T:
            unions = np.concatenate([unions, unions | (1 << node)[:, None]], axis=1)
            products = np.concatenate([products, products + within[node, some][:, None]], axis=1)
        yield some, nodes, unions, products


def _signs(n_sets: int) -> np.ndarray:
    """(-1)^(|T| + 1), and 0 of the empty set."""
    signs = 2.0 * (np.bitwise_count(np.arange(n_sets)) % 2) - 1.0
    signs[0] = 0.0
    return signs


def _log(values: np.ndarray) -> np.ndarray:
    """The logarithm, -inf of 0 and of what rounding left below."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(values, 0.0))


# Graphs in layers: the roots, then the nodes whose last parent is a root, and so on (Kuipers and Moffa 2017, JASA).
#
# Node i is in layer k exactly if it has a parent in layer k - 1 and none in k or after; every graph has one partition
# of
# its nodes into ordered layers. Given the layers the parents of different nodes are independent,
#
# $$p(pa(i) = P \mid layers) \propto w_i(P) \quad \text{for } P \subseteq U, \; P \cap K \ne \emptyset,$$
#
# with U the union of the earlier layers and K the last of them.


def layers_of(dags: np.ndarray) -> np.ndarray:
    """Layer of every node, counted from 0: the length of the longest path to it, `[G, L]`.

    Args:
        dags: `[G, L, L]`, row = cause.
    """
    edges, layer = dags.astype(bool), np.zeros(dags.shape[:2], dtype=np.int64)
    for _ in range(dags.shape[-1]):
        layer = np.where(edges, layer[:, :, None] + 1, 0).max(1)
    return layer


def draw_dags(scores: np.ndarray, layers: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A graph for each of some partitions, drawn from its posterior given the partition, `[G, L, L]`.

    Args:
        scores: `[L, 2^L]` in nats.
        layers: Layer of every node, `[G, L]`, counted from 0 without gaps.
        generator: Source of chance.
    """
    n_nodes = len(scores)
    bits = 1 << np.arange(n_nodes)
    dags = np.zeros((len(layers), n_nodes, n_nodes), dtype=np.int8)
    for node in range(n_nodes):
        within = (layers < layers[:, [node]]) @ bits
        last = (layers == layers[:, [node]] - 1) @ bits
        keys, group = np.unique(within << n_nodes | last, return_inverse=True)
        for number, key in enumerate(keys.tolist()):
            rows = np.flatnonzero(group.reshape(-1) == number)
            drawn = draw_parents(scores[node], key >> n_nodes, key % 2**n_nodes, len(rows), generator)
            dags[rows, :, node] = members(drawn, n_nodes)
    return dags


def draw_parents(
    scores: np.ndarray, within: int, hitting: int, n_draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Sets of parents from their posterior, as far as they lie within one set and have a node of another, `[draw]`.

    Args:
        scores: Of a node with every set of parents, `[2^L]`, in nats.
        within: Nodes that may be parents.
        hitting: Nodes of which one must be; empty: any set within will do.
        n_draws: How many.
        generator: Source of chance.
    """
    sets = subsets_of(within)
    if hitting:
        sets = sets[sets & hitting != 0]
    mass = np.cumsum(np.exp(scores[sets] - scores[sets].max()))
    return sets[np.searchsorted(mass, generator.random(n_draws) * mass[-1], side="right")]


# Graphs drawn from their posterior exactly, layer by layer, out of the sums of Tian and He.
#
# After the layers up to U, of which the last but one ended at U', the next one is R with probability in proportion to
#
# $$\prod_{j \in R} [A_j(U) - A_j(U')] \; D_U(R), \qquad
# D_U(R) = \sum_{T \subseteq V \setminus (U \cup R)} (-1)^{|T|} B(U \cup R \cup T) \prod_{i \in T} A_i(U):$$
#
# the nodes of R have a parent after U', and of the others none can do with parents in U (A and B as in `exact_sums`;
# the
# idea is that of Talvitie, Vuoksenmaa and Koivisto 2019, UAI). Then every node draws its parents.


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
