r"""Weight of all graphs that have given layers, from a table of sums.

A graph has the layers $K_1, K_2, \dots$ exactly if every node of a layer has a parent in the layer before, and none in
its own or later ones (Kuipers and Moffa 2017, JASA, equation 8). So the weight of all of them is

$$\prod_k \prod_{i \in K_k} [A_i(U) - A_i(U \setminus K_{k-1})], \qquad
A_i(U) = \sum_{P \subseteq U} e^{s_i(P)}, \quad U = K_1 \cup \dots \cup K_{k-1}.$$
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, inf, log

import numpy as np

from inference.graphs.layered_graphs import draw_parents
from inference.graphs.subsets import log_sums_over_subsets, subsets_of

__all__ = ["Layers", "PartitionScore", "nodes_of"]

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
