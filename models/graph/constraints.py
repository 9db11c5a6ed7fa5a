r"""Edges of the learned graph that are fixed beforehand, and the order of the nodes that goes with them.

A node must come before another where an edge between them is required, and where allowed paths lead from the one to
the other and none back: no allowed graph is lost by that. Scores that keep this order come from free ones, in
topological order, by

$$\xi'_j = m_j + \log(1 + e^{\xi_j - m_j}), \qquad m_j = \max_{i \text{ before } j} \xi'_i,$$

so that $\xi'_j > m_j$ for every $\xi$, with a gradient in every score. Without knowledge, $\xi' = \xi$.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from models.acyclicity import closure

__all__ = ["EdgeConstraints"]


class EdgeConstraints(nn.Module):
    """Edges that are there at every temperature, edges that are never there, and the order of the nodes.

    Its matrices are settings, not weights: no checkpoint holds them.

    Args:
        forbidden: Bool `[L, L]`, row = cause, column = effect; the diagonal is not looked at.
        required: Bool `[L, L]`.

    Raises:
        ValueError: An edge is both, or the required ones have a cycle.
    """

    forbidden: Tensor
    required: Tensor

    def __init__(self, forbidden: Tensor, required: Tensor) -> None:
        super().__init__()
        if bool((forbidden & required).any()):
            raise ValueError("required: expected edges that are not forbidden, got one that is; leave one of them out")
        self.register_buffer("forbidden", forbidden.clone(), persistent=False)
        self.register_buffer("required", required.clone(), persistent=False)
        earlier = _earlier(forbidden, required)
        if bool(earlier.diagonal().any()):
            raise ValueError("required: expected edges without a cycle, got one with; leave an edge out")
        order = torch.argsort(earlier.sum(0), stable=True).tolist()
        self._before = [(node, torch.nonzero(earlier[:, node]).flatten().tolist()) for node in order]

    @property
    def order(self) -> list[int]:
        """Nodes in an order that is known: where scores are equal in floating point, it decides."""
        return [node for node, _ in self._before]

    @classmethod
    def none(cls, n_nodes: int) -> EdgeConstraints:
        """Nothing is fixed."""
        nothing = torch.zeros(n_nodes, n_nodes, dtype=torch.bool)
        return cls(nothing, nothing)

    def ordered(self, node_score: Tensor) -> Tensor:
        """ξ' of ξ `[L]`: scores that keep the order."""
        lifted: dict[int, Tensor] = {}
        for node, before in self._before:
            score = node_score[node]
            if before:
                highest = torch.stack([lifted[k] for k in before]).amax()
                score = highest + softplus(score - highest)
            lifted[node] = score
        return torch.stack([lifted[node] for node in range(len(lifted))])

    def free_scores(self, ordered: Tensor) -> Tensor:
        """ξ of ξ' `[L]`: the inverse of `ordered`, of scores that keep the order."""
        free = ordered.clone()
        for node, before in self._before:
            if before:
                highest = ordered[before].amax()
                free[node] = highest + torch.expm1(ordered[node] - highest).log()
        return free

    def applied(self, strength: Tensor) -> Tensor:
        """E `[L, L]` with 1 for required and 0 for forbidden edges; acyclic where E goes with ξ'."""
        return torch.where(self.required, 1.0, torch.where(self.forbidden, 0.0, strength))

    def with_order(self, adjacency: Tensor) -> Tensor:
        """A graph and the order, bool `[L, L]`: without a cycle where the graph has none and keeps to what is fixed.

        Raises:
            ValueError: The graph has a forbidden edge, or lacks a required one.
        """
        edges = adjacency > 0
        wrong = (edges & self.forbidden) | (~edges & self.required)
        if bool(wrong.any()):
            cause, effect = torch.nonzero(wrong)[0].tolist()
            raise ValueError(
                f"adjacency: expected a graph that agrees with what is known, got one that does not for the edge from "
                f"node {cause} to node {effect}; change it or what is known"
            )
        earlier = edges.clone()
        for node, before in self._before:
            earlier[before, node] = True
        return earlier


def _earlier(forbidden: Tensor, required: Tensor) -> Tensor:
    """Which nodes come before which, bool `[L, L]`, transitive; a true diagonal is a cycle."""
    itself = torch.eye(len(forbidden), dtype=torch.bool, device=forbidden.device)
    reaches = closure(~forbidden & ~itself)
    return closure(required | (reaches & ~reaches.T))
