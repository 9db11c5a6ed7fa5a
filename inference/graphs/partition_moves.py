r"""Steps of a Markov chain over the layers of graphs whose stationary distribution is the posterior of the layers.

Each step leaves the posterior as it is; together they reach every partition: one node is drawn anew among all places
that it can have (a Gibbs step, so it may stay), two nodes of neighbouring or of any layers change places, a layer is
split or two neighbours are joined (Kuipers and Moffa 2017, JASA, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

import numpy as np

from inference.graphs.partition_score import Layers, PartitionScore, nodes_of

__all__ = ["MOVES", "Move", "place_anew", "split_or_join", "swap_any", "swap_neighbours"]

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
