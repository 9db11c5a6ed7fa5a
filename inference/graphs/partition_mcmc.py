"""Graphs from their posterior by a Markov chain, where there are too many nodes for exact sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inference.graphs.edge_reversal import Parents, reverse_an_edge
from inference.graphs.layered_graphs import layers_of
from inference.graphs.optimum import best_dag
from inference.graphs.partition_moves import MOVES
from inference.graphs.partition_score import Layers, PartitionScore, nodes_of
from inference.graphs.score_table import check_scores
from inference.graphs.subsets import members

__all__ = ["Chains", "partition_chains"]

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
