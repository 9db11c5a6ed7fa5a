"""What every graph over the nodes has: p(N) as tables, edges, an order; and how training moves it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from causalpima.models.dag import closure

__all__ = [
    "EDGE_THRESHOLD",
    "EdgeConstraints",
    "NodeGraph",
    "ScoreForm",
    "conditional_table",
    "depth_of_nodes",
]


EDGE_THRESHOLD = 0.5

_RAREST = 1e-12


class ScoreForm(NamedTuple):
    """A graph as scores, weights and temperature that its edge strengths come from (docs/dag.md).

    Attributes:
        node_score: ξ `[L]`.
        edge_weight: B `[L, L]`, symmetric and non-negative.
        temperature: β; 0 stands for the limit, a hard graph.
    """

    node_score: Tensor
    edge_weight: Tensor
    temperature: float


class NodeGraph(nn.Module, ABC):
    """A directed acyclic graph over categorical nodes with p(N): what model, guide, training and results work with.

    Rows are causes and columns are effects. `log_joint` is normalised at all times: the support of `edge_strength` is
    acyclic, or, while a `RelaxedGraph` is trained, the sum over all cells is divided out. A finished graph is acyclic.

    Args:
        outcomes: Number of outcomes of each node, all >= 2.

    Raises:
        ValueError: No node, or a node with fewer than two outcomes.
    """

    def __init__(self, outcomes: Sequence[int]) -> None:
        super().__init__()
        if not outcomes or min(outcomes) < 2:
            raise ValueError(f"nodes: expected at least one node and at least 2 outcomes each, got {list(outcomes)}")
        self.outcomes = tuple(outcomes)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, L."""
        return len(self.outcomes)

    @property
    def n_cells(self) -> int:
        """Number of joint outcomes, C."""
        return math.prod(self.outcomes)

    @abstractmethod
    def edge_strength(self) -> Tensor:
        """How much of every edge p(N) has now, `[L, L]` in [0, 1]; of a hard graph 0 or 1."""

    @abstractmethod
    def conditional_log_tables(self) -> Tensor:
        """log p(N_l | parents), `[L, C_1, ..., C_L]`; constant along the axes of nodes that are no parents."""

    @abstractmethod
    def sample_log_tables(self) -> Tensor:
        """The same in a Pyro program: with sites for what is random of the graph, where anything is."""

    def log_joint(self) -> Tensor:
        """log p(N), `[C_1, ..., C_L]`."""
        return self.conditional_log_tables().sum(0)

    @abstractmethod
    def causal_order(self) -> list[int]:
        """Nodes sorted so that causes come before effects."""

    @abstractmethod
    def adjacency(self) -> Tensor:
        """Edges of the graph as it is read off, bool `[L, L]`."""

    @abstractmethod
    def log_prior(self) -> Tensor:
        """Declared log-prior of what gradients move, a scalar; 0 where they move nothing."""

    @abstractmethod
    def draw_noise(self, scale: float) -> None:
        """Draw what noise there is, once per step."""

    @abstractmethod
    def project(self) -> None:
        """Put parameters back to their range after a gradient step."""

    @abstractmethod
    def set_temperature(self, temperature: float) -> None:
        """Set β, where edges depend on one."""

    def count_samples(self, n_samples: float) -> None:
        """Told before gradient steps: how many samples p(N) is fitted to; for log-priors that are meant per sample."""

    def end_epoch(self) -> dict[str, float]:
        """Once per epoch of joint training: what goes on with the epochs; returns what is recorded of it."""
        return {}

    @abstractmethod
    def score_form(self) -> ScoreForm:
        """Scores, weights and temperature without noise."""

    @abstractmethod
    def take_over(self, adjacency: Tensor, joint: Tensor) -> None:
        """Become a given graph with a given p(N): each table is p(N_l | parents) under `joint`, and p(N) their product.

        Args:
            adjacency: `[L, L]` of 0 and 1, row = cause, column = effect, without cycles.
            joint: `[C_1, ..., C_L]`.

        Raises:
            ValueError: The adjacency has a cycle.
        """


def depth_of_nodes(adjacency: Tensor) -> Tensor:
    """Number of edges on the longest path to each node, `[L]`: an order with causes before effects.

    Raises:
        ValueError: The adjacency has a cycle.
    """
    edges = adjacency > 0
    depth = torch.zeros(len(edges), device=edges.device)
    for _ in edges:
        depth = ((depth + 1).unsqueeze(1) * edges).amax(0)
    if bool(((depth.unsqueeze(0) <= depth.unsqueeze(1)) & edges).any()):
        raise ValueError(
            "adjacency: expected a graph without cycles, got one with; rows are causes, columns are effects"
        )
    return depth


def conditional_table(joint: Tensor, node: int, parents: Tensor) -> Tensor:
    """p(N_l | parents), with size 1 along all other nodes; uniform where the parents' outcomes have no mass."""
    others = [k for k in range(joint.ndim) if k != node and not parents[k]]
    family = joint.sum(others, keepdim=True) if others else joint
    total = family.sum(node, keepdim=True)
    return torch.where(total > 0, family / total.clamp(min=_RAREST), 1.0 / joint.shape[node])


# Edges of the learned graph that are fixed beforehand, and the order of the nodes that goes with them.
#
# A node must come before another where an edge between them is required, and where allowed paths lead from the one to
# the other and none back: no allowed graph is lost by that. Scores that keep this order come from free ones, in
# topological order, by
#
# $$\xi'_j = m_j + \log(1 + e^{\xi_j - m_j}), \qquad m_j = \max_{i \text{ before } j} \xi'_i,$$
#
# so that $\xi'_j > m_j$ for every $\xi$, with a gradient in every score. Without knowledge, $\xi' = \xi$.


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
