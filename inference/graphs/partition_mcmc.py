"""Graphs from their posterior by a Markov chain, where there are too many nodes for exact sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, expm1, inf, log
from typing import NamedTuple

import numpy as np

from causalpima.inference.graphs.exact_sums import draw_parents, layers_of
from causalpima.inference.graphs.scores import best_dag, check_scores, log_sums_over_subsets, members, subsets_of

__all__ = [
    "MOVES",
    "Chains",
    "Layers",
    "Move",
    "Parents",
    "PartitionScore",
    "descendants",
    "nodes_of",
    "partition_chains",
    "place_anew",
    "reverse_an_edge",
    "split_or_join",
    "swap_any",
    "swap_neighbours",
]


# Weight of all graphs that have given layers, from a table of sums.
#
# A graph has the layers $K_1, K_2, \dots$ exactly if every node of a layer has a parent in the layer before, and none
# in
# its own or later ones (Kuipers and Moffa 2017, JASA, equation 8). So the weight of all of them is
#
# $$\prod_k \prod_{i \in K_k} [A_i(U) - A_i(U \setminus K_{k-1})], \qquad
# A_i(U) = \sum_{P \subseteq U} e^{s_i(P)}, \quad U = K_1 \cup \dots \cup K_{k-1}.$$


Layers = tuple[int, ...]
"""Sets of nodes as bits, the roots first."""

_CANCELLED = 1e-10
_MOST_HELD = 500_000
_FEW = 8
_FEW_SETS = 2**_FEW


class PartitionScore:
    """log weights of layers; what was computed once is held.

    Args:
        scores: `[L, 2^L]` in nats.
    """

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores - scores.max(1, keepdims=True)
        self._within = log_sums_over_subsets(self.scores)
        self._best = np.argsort(-self.scores, axis=1, kind="stable").astype(np.int32)
        self._nodes: dict[tuple[int, int, int], float] = {}
        self._layers: dict[tuple[int, int, int], float] = {}

    @property
    def n_nodes(self) -> int:
        """L."""
        return len(self.scores)

    def total(self, layers: Sequence[int]) -> float:
        """log weight of all graphs with these layers, relative to each node's best score; -inf where there is none."""
        found, within, last = 0.0, 0, 0
        for layer in layers:
            found += self._layer(layer, within, last)
            if found == -inf:
                return found
            within, last = within | layer, layer
        return found

    def node(self, node: int, within: int, hitting: int) -> float:
        """log of the sum over sets of parents within one set that have a node of another; empty: over all within."""
        key = (node, within, hitting)
        if key not in self._nodes:
            _make_room(self._nodes)
            self._nodes[key] = self._sum(*key)
        return self._nodes[key]

    def draw_parents(self, node: int, within: int, hitting: int, generator: np.random.Generator) -> int:
        """One of these sets of parents, from its posterior."""
        if within.bit_count() <= _FEW:
            return int(draw_parents(self.scores[node], within, hitting, 1, generator)[0])
        return self._best_first(node, within, hitting, generator.random())

    def _layer(self, layer: int, within: int, last: int) -> float:
        key = (layer, within, last)
        if key not in self._layers:
            _make_room(self._layers)
            self._layers[key] = sum(self.node(node, within, last) for node in nodes_of(layer))
        return self._layers[key]

    def _sum(self, node: int, within: int, hitting: int) -> float:
        """By the difference of two sums, unless it leaves too few digits."""
        everything = self._within[node, within].item()
        if not hitting or everything == -inf:
            return everything
        share = -expm1(self._within[node, within & ~hitting].item() - everything)
        return everything + log(share) if share > _CANCELLED else self._one_by_one(node, within, hitting)

    def _one_by_one(self, node: int, within: int, hitting: int) -> float:
        sets = subsets_of(within)
        values = self.scores[node, sets[sets & hitting != 0]]
        return float(np.logaddexp.reduce(values)) if len(values) else -inf

    def _best_first(self, node: int, within: int, hitting: int, uniform: float) -> int:
        """The same, looking through sets from the best one on until their share of all is what was drawn."""
        total = self.node(node, within, hitting)
        start, length, found, mass = 0, _FEW_SETS, 0, 0.0
        while start < self.scores.shape[1] and mass <= uniform:
            sets = self._best[node, start : start + length]
            sets = sets[(sets & ~within == 0) & ((sets & hitting != 0) | (hitting == 0))]
            sums = mass + np.cumsum(np.exp(self.scores[node, sets] - total))
            if len(sets):
                found, mass = (
                    int(sets[min(np.searchsorted(sums, uniform, side="right"), len(sets) - 1)]),
                    float(sums[-1]),
                )
            start, length = start + length, 4 * length
        return found


def nodes_of(nodes: int) -> list[int]:
    """The nodes of a set, in ascending order."""
    return [node for node in range(nodes.bit_length()) if nodes >> node & 1]


def _make_room(held: dict[tuple[int, int, int], float]) -> None:
    if len(held) >= _MOST_HELD:
        held.clear()


# Steps of a Markov chain over the layers of graphs whose stationary distribution is the posterior of the layers.
#
# Each step leaves the posterior as it is; together they reach every partition: one node is drawn anew among all places
# that it can have (a Gibbs step, so it may stay), two nodes of neighbouring or of any layers change places, a layer is
# split or two neighbours are joined (Kuipers and Moffa 2017, JASA, section 4).


Move = Callable[[Layers, PartitionScore, np.random.Generator], Layers]


def place_anew(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    """Take a node out and draw its place: in any layer that is left, or in one of its own before, between or after."""
    node = 1 << int(generator.integers(score.n_nodes))
    rest = tuple(layer & ~node for layer in layers if layer != node)
    joined = [(*rest[:k], layer | node, *rest[k + 1 :]) for k, layer in enumerate(rest)]
    places = joined + [(*rest[:k], node, *rest[k:]) for k in range(len(rest) + 1)]
    weights = np.array([score.total(place) for place in places])
    mass = np.cumsum(np.exp(weights - weights.max()))
    return places[int(np.searchsorted(mass, generator.random() * mass[-1], side="right"))]


def swap_neighbours(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    """Two nodes of neighbouring layers change places."""
    if len(layers) == 1:
        return layers
    k = int(generator.integers(len(layers) - 1))
    return _swapped(layers, k, k + 1, score, generator)


def swap_any(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    """Two nodes of any two layers change places."""
    if len(layers) == 1:
        return layers
    k, m = generator.choice(len(layers), size=2, replace=False).tolist()
    return _swapped(layers, k, m, score, generator)


def split_or_join(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    """With equal chances, split a layer with several nodes in two, or join two neighbours."""
    return (_split if generator.random() < 0.5 else _join)(layers, score, generator)


def _split(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    several = _with_several(layers)
    if not several:
        return layers
    k = several[int(generator.integers(len(several)))]
    nodes = nodes_of(layers[k])
    bits = int(generator.integers(1, 2 ** len(nodes) - 1))
    first = sum(1 << node for number, node in enumerate(nodes) if bits >> number & 1)
    proposal = (*layers[:k], first, layers[k] & ~first, *layers[k + 1 :])
    return _accepted(layers, proposal, _log_splits(layers, k) - log(len(layers)), score, generator)


def _join(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    if len(layers) == 1:
        return layers
    k = int(generator.integers(len(layers) - 1))
    proposal = (*layers[:k], layers[k] | layers[k + 1], *layers[k + 2 :])
    return _accepted(layers, proposal, log(len(layers) - 1) - _log_splits(proposal, k), score, generator)


def _log_splits(layers: Layers, k: int) -> float:
    """Minus the log probability that a given split of layer k is proposed."""
    return log(len(_with_several(layers))) + log(2 ** layers[k].bit_count() - 2)


def _with_several(layers: Layers) -> list[int]:
    return [k for k, layer in enumerate(layers) if layer & (layer - 1)]


def _swapped(layers: Layers, k: int, m: int, score: PartitionScore, generator: np.random.Generator) -> Layers:
    one, other = (1 << int(generator.choice(nodes_of(layers[number]))) for number in (k, m))
    proposal = list(layers)
    proposal[k], proposal[m] = layers[k] ^ one | other, layers[m] ^ other | one
    return _accepted(layers, tuple(proposal), 0.0, score, generator)


def _accepted(
    layers: Layers, proposal: Layers, log_ratio: float, score: PartitionScore, generator: np.random.Generator
) -> Layers:
    """Metropolis and Hastings; `log_ratio`: of the proposal back over the one there."""
    new = score.total(proposal)
    if new == -inf:
        return layers
    gain = new - score.total(layers) + log_ratio
    return proposal if gain >= 0 or generator.random() < exp(gain) else layers


MOVES: tuple[tuple[Move, float], ...] = (
    (place_anew, 0.5),
    (swap_neighbours, 0.15),
    (swap_any, 0.15),
    (split_or_join, 0.2),
)
"""Moves and how often each is made."""


# The reversal of an edge with new parents at both ends (Grzegorczyk and Husmeier 2008, Machine Learning 71, 265).
#
# Where two nodes depend strongly, i → j and j → i are as good and everything between is bad, so that steps that change
# one node at a time stay on one side. This step takes the parents of both away, draws parents of i with j among them
# from
# all that do not make a cycle, then parents of j, each from its posterior given the rest of the graph, and accepts with
#
# $$\min \Bigl\{1, \frac{|E|}{|E'|} \cdot
# \frac{\sum_{P \ni j} w_i(P)\, \sum_P w_j(P)}{\sum_{P \ni i} w_j(P)\, \sum_P w_i(P)} \Bigr\},$$
#
# sums over sets of parents that are allowed at that point: above on the way there, below on the way back.


Parents = tuple[int, ...]
"""Parents of each node, sets as bits."""


def reverse_an_edge(parents: Parents, score: PartitionScore, generator: np.random.Generator) -> Parents:
    """Reverse one edge, chosen evenly, or leave the graph as it is.

    Args:
        parents: A graph.
        score: Sums over sets of parents.
        generator: Source of chance.
    """
    edges = [(i, j) for j, above in enumerate(parents) for i in nodes_of(above)]
    if not edges:
        return parents
    i, j = edges[int(generator.integers(len(edges)))]
    orphaned = _with(_with(parents, i, 0), j, 0)
    proposal, there = _drawn(orphaned, i, j, score, generator)
    if proposal is None:
        return parents
    _, back = _sums(orphaned, j, i, parents[j], score)
    n_edges = sum(above.bit_count() for above in proposal)
    gain = there - back + log(len(edges)) - log(n_edges)
    return proposal if gain >= 0 or generator.random() < exp(gain) else parents


def descendants(parents: Parents, node: int) -> int:
    """The node and all that can be reached from it, as bits."""
    found, before = 1 << node, 0
    while found != before:
        before = found
        found |= sum(1 << child for child, above in enumerate(parents) if above & found)
    return found


def _drawn(
    orphaned: Parents, i: int, j: int, score: PartitionScore, generator: np.random.Generator
) -> tuple[Parents | None, float]:
    """Parents of i with j among them, then of j; and the log of the product of both sums."""
    allowed = _allowed(orphaned, i)
    if not allowed >> j & 1 or score.node(i, allowed, 1 << j) == -np.inf:
        return None, -np.inf
    above = score.draw_parents(i, allowed, 1 << j, generator)
    half, total = _sums(orphaned, i, j, above, score)
    if total == -np.inf:
        return None, total
    return _with(half, j, score.draw_parents(j, _allowed(half, j), 0, generator)), total


def _sums(orphaned: Parents, i: int, j: int, above: int, score: PartitionScore) -> tuple[Parents, float]:
    """The graph with these parents of i, and the log of the product of the sums that a proposal draws from."""
    half = _with(orphaned, i, above)
    return half, score.node(i, _allowed(orphaned, i), 1 << j) + score.node(j, _allowed(half, j), 0)


def _allowed(parents: Parents, node: int) -> int:
    """Nodes that make no cycle as parents."""
    return (1 << len(parents)) - 1 & ~descendants(parents, node)


def _with(parents: Parents, node: int, above: int) -> Parents:
    return (*parents[:node], above, *parents[node + 1 :])


_MOVES_PER_NODE = 2
_REVERSALS = 8
_WARM_UP = 0.25
_ANNEALING = (0.01, 0.03, 0.1, 0.3)


class Chains(NamedTuple):
    """Graphs from several chains, after each has forgotten where it began.

    Attributes:
        dags: `[chain, draw, L, L]`, row = cause.
        log_scores: Score of each in nats, `[chain, draw]`.
    """

    dags: np.ndarray
    log_scores: np.ndarray


def partition_chains(scores: np.ndarray, n_chains: int = 4, n_draws: int = 1000, seed: int = 0) -> Chains:
    """Run chains over the layers of graphs, with the uniform prior over graphs (Kuipers and Moffa 2017, JASA).

    Between two draws each chain makes 2 L moves of its layers, draws a graph with these layers, and proposes eight
    reversals of edges with new parents. One chain starts at the best graph, the others at random ones that are allowed,
    with scores times 0.01, 0.03, 0.1 and 0.3 for a while: from there on alone, chains of many samples end in local
    optima. A quarter as many draws are then thrown away of each.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats; -inf: not allowed.
        n_chains: Number of chains.
        n_draws: Draws that are kept of each.
        seed: Seed of all chance.

    Raises:
        ValueError: The table has another shape, or allows no graph.
    """
    check_scores(scores)
    generators = np.random.default_rng(seed).spawn(n_chains)
    starts = [_best(scores), *(_annealed(scores, n_draws, generator) for generator in generators[1:])]
    score, thrown_away = PartitionScore(scores), int(_WARM_UP * n_draws)
    dags = [
        _chain(start, score, thrown_away + n_draws, generator)[thrown_away:]
        for start, generator in zip(starts, generators, strict=True)
    ]
    graphs = members(np.array(dags), len(scores)).swapaxes(-1, -2).astype(np.int8)
    return Chains(graphs, scores[np.arange(len(scores)), np.array(dags)].sum(-1))


def _best(scores: np.ndarray) -> Layers:
    """The layers of the best graph."""
    layer = layers_of(best_dag(scores)[0][None])[0]
    return tuple(int((1 << np.flatnonzero(layer == k)).sum()) for k in range(layer.max() + 1))


def _annealed(scores: np.ndarray, n_draws: int, generator: np.random.Generator) -> Layers:
    """From the best graph by random scores of what the table allows, as scores grow to what they are."""
    layers = _best(np.where(scores > -np.inf, generator.normal(size=scores.shape), -np.inf))
    for share in _ANNEALING:
        n_steps = max(1, int(_WARM_UP * n_draws / len(_ANNEALING)))
        layers = _layers(_chain(layers, PartitionScore(share * scores), n_steps, generator)[-1])
    return layers


def _chain(layers: Layers, score: PartitionScore, n_draws: int, generator: np.random.Generator) -> list[Parents]:
    """Parents of every node in each draw."""
    moves, shares = zip(*MOVES, strict=True)
    found = []
    for _ in range(n_draws):
        for choice in generator.choice(len(moves), size=_MOVES_PER_NODE * score.n_nodes, p=shares).tolist():
            layers = moves[choice](layers, score, generator)
        parents = _graph(layers, score, generator)
        for _ in range(_REVERSALS):
            parents = reverse_an_edge(parents, score, generator)
        layers = _layers(parents)
        found.append(parents)
    return found


def _graph(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Parents:
    """A graph with these layers, from its posterior."""
    parents, within, last = [0] * score.n_nodes, 0, 0
    for layer in layers:
        for node in nodes_of(layer):
            parents[node] = score.draw_parents(node, within, last, generator)
        within, last = within | layer, layer
    return tuple(parents)


def _layers(parents: Parents) -> Layers:
    """The layers of a graph: what has all its parents in those before, and did not earlier."""
    found, done, left = [], 0, set(range(len(parents)))
    while left:
        ready = {node for node in left if not parents[node] & ~done}
        found.append(sum(1 << node for node in ready))
        done, left = done | found[-1], left - ready
    return tuple(found)
