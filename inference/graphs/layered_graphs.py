r"""Graphs in layers: the roots, then the nodes whose last parent is a root, and so on (Kuipers and Moffa 2017, JASA).

Node i is in layer k exactly if it has a parent in layer k - 1 and none in k or after; every graph has one partition of
its nodes into ordered layers. Given the layers the parents of different nodes are independent,

$$p(pa(i) = P \mid layers) \propto w_i(P) \quad \text{for } P \subseteq U, \; P \cap K \ne \emptyset,$$

with U the union of the earlier layers and K the last of them.
"""

from __future__ import annotations

import numpy as np

from inference.graphs.subsets import members, subsets_of

__all__ = ["draw_dags", "draw_parents", "layers_of"]


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
