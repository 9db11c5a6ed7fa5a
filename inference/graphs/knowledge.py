"""What is known of a graph beforehand: edges that are not there, edges that are there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["GraphKnowledge"]


@dataclass(frozen=True)
class GraphKnowledge:
    """Edges that every graph must lack or have; tiers and designed nodes are edges that are not there.

    Attributes:
        nodes: Names of the L nodes.
        forbidden: bool `[L, L]`, row = cause, column = effect; the diagonal is not looked at.
        required: bool `[L, L]`; no edge is both, and the required ones have no cycle.
    """

    nodes: tuple[str, ...]
    forbidden: np.ndarray
    required: np.ndarray

    @classmethod
    def none(cls, nodes: tuple[str, ...]) -> GraphKnowledge:
        """Nothing is known."""
        empty = np.zeros((len(nodes), len(nodes)), dtype=bool)
        return cls(tuple(nodes), empty, empty.copy())

    def allows(self, dags: np.ndarray) -> np.ndarray:
        """Whether graphs `[..., L, L]` agree with it, bool `[...]`."""
        edges = dags.astype(bool)
        agrees: np.ndarray = ~(edges & self.forbidden).any((-1, -2)) & ~(~edges & self.required).any((-1, -2))
        return agrees

    def parent_sets(self) -> np.ndarray:
        """Which sets of parents each node may have, bool `[L, 2^L]`; bit k of a set stands for node k."""
        n_nodes = len(self.nodes)
        sets = np.arange(2**n_nodes)
        bits = (1 << np.arange(n_nodes))[:, None]
        banned = (bits * (self.forbidden | np.eye(n_nodes, dtype=bool))).sum(0)[:, None]
        needed = (bits * self.required).sum(0)[:, None]
        allowed: np.ndarray = ((sets & banned) == 0) & ((sets & needed) == needed)
        return allowed
