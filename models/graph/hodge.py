"""The learned graph over the nodes: owner of scores, edge weights, temperature and tables."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from causalpima.models import dag
from causalpima.models.graph.base import (
    EDGE_THRESHOLD,
    EdgeConstraints,
    NodeGraph,
    ScoreForm,
    conditional_table,
    depth_of_nodes,
)

__all__ = ["HodgeGraph"]

# tanh(10) is 1 to 4e-9.
_SATURATED = 10.0
_RAREST = 1e-12


class HodgeGraph(NodeGraph):
    """Directed acyclic graph over categorical nodes, parametrised by a graph gradient (paper, section 2.2).

    Parameters: `node_score` ξ `[L]`; `pair_weight`, one B per unordered pair, kept >= 0 by `project`;
    `conditional_logits` `[L, C_1, ..., C_L]`. Buffers: `temperature` β and `node_noise`.

    **How edges are read off.** With B > 0 the limit β -> 0 is the complete graph over the order of ξ; only B = 0
    removes an edge in that limit. The graph of a fit is therefore read at the final temperature: i -> j is an edge
    where E_ij > 0.5, without noise. The support of E follows the order of ξ, so this graph is acyclic at every
    threshold.

    **What is known.** Forbidden edges have E = 0 and required ones E = 1, exactly, at every temperature. Scores are put
    in an order that goes with that (`EdgeConstraints`); noise is added before.

    Args:
        outcomes: Number of outcomes of each node, all >= 2.
        temperature: Initial β, positive.
        edge_rate: Rate of an exponential prior on every B (0: flat, as in the paper).
        constraints: Edges that are fixed; None: none.

    Raises:
        ValueError: No node, a node with fewer than two outcomes, or a temperature that is not positive.
    """

    _pairs: Tensor
    temperature: Tensor
    node_noise: Tensor

    def __init__(
        self,
        outcomes: Sequence[int],
        temperature: float = 1.0,
        edge_rate: float = 0.0,
        constraints: EdgeConstraints | None = None,
    ) -> None:
        super().__init__(outcomes)
        if not temperature > 0:
            raise ValueError(f"temperature: expected a positive number, got {temperature}")
        self.edge_rate = edge_rate
        n = len(self.outcomes)
        self.constraints = EdgeConstraints.none(n) if constraints is None else constraints
        self.register_buffer("_pairs", torch.triu_indices(n, n, offset=1))
        self.node_score = nn.Parameter(torch.randn(n))
        self.pair_weight = nn.Parameter(torch.ones(n * (n - 1) // 2))
        self.conditional_logits = nn.Parameter(0.1 * torch.randn(n, *self.outcomes))
        self.register_buffer("temperature", torch.tensor(float(temperature)))
        self.register_buffer("node_noise", torch.zeros(n))

    def draw_noise(self, scale: float) -> None:
        """Draw the noise on ξ that every use of the graph sees until the next draw (training mode only)."""
        self.node_noise.normal_(0.0, 1.0).mul_(scale)

    def set_temperature(self, temperature: float) -> None:
        """Set β."""
        self.temperature.fill_(temperature)

    def edge_weight(self) -> Tensor:
        """B, symmetric `[L, L]` with zero diagonal, non-negative."""
        rows, columns = self._pairs
        upper = self.conditional_logits.new_zeros(self.n_nodes, self.n_nodes)
        upper = upper.index_put((rows, columns), self.pair_weight.clamp(min=0))
        return upper + upper.T

    def edge_strength(self) -> Tensor:
        """E `[L, L]` at the current temperature; with noise on ξ in training mode, without it otherwise."""
        return self._strength(self._noisy_score())

    def conditional_log_tables(self) -> Tensor:
        """log p(N_l | parents), `[L, C_1, ..., C_L]`."""
        return dag.conditional_log_tables(self.conditional_logits, self.edge_strength())

    def sample_log_tables(self) -> Tensor:
        """`conditional_log_tables`: nothing is random."""
        return self.conditional_log_tables()

    def causal_order(self) -> list[int]:
        """Nodes sorted so that causes come before effects."""
        score = self.constraints.ordered(self._noisy_score()).tolist()
        return sorted(self.constraints.order, key=lambda node: score[node])

    def adjacency(self) -> Tensor:
        """Edges of the learned graph, bool `[L, L]`: E > 0.5 without noise."""
        return self._strength(self.node_score) > EDGE_THRESHOLD

    def _noisy_score(self) -> Tensor:
        return self.node_score + self.node_noise if self.training else self.node_score

    def _strength(self, node_score: Tensor) -> Tensor:
        ordered = self.constraints.ordered(node_score)
        return self.constraints.applied(dag.edge_strength(ordered, self.edge_weight(), self.temperature))

    def log_prior(self) -> Tensor:
        """Declared log-prior: ξ ~ Normal(0, 1), which fixes its scale, and B ~ Exponential(edge_rate)."""
        return -0.5 * self.node_score.square().sum() - self.edge_rate * self.pair_weight.clamp(min=0).sum()

    def score_form(self) -> ScoreForm:
        """ξ in the order that is known, without noise; B, of edges that are fixed the one that gives their E; β."""
        score = self.constraints.ordered(self.node_score)
        ascent = torch.relu(score.unsqueeze(0) - score.unsqueeze(1))
        saturated = 2 * _SATURATED * self.temperature / ascent.clamp(min=_RAREST)
        fixed = self.constraints.forbidden & (ascent > 0) | self.constraints.required
        upward = torch.where(self.constraints.required, saturated, 0.0)
        weight = torch.where(fixed | fixed.T, upward + upward.T, self.edge_weight())
        return ScoreForm(score, weight, float(self.temperature))

    @torch.no_grad()
    def take_over(self, adjacency: Tensor, joint: Tensor) -> None:
        """Become a given graph with a given p(N): every E is 1 or 0 (to 1e-8) at the present temperature.

        Each table becomes p(N_l | parents) under `joint`, and p(N) their product: `joint` itself if it factorises so.

        Args:
            adjacency: `[L, L]` of 0 and 1, row = cause, column = effect, without cycles.
            joint: `[C_1, ..., C_L]`.

        Raises:
            ValueError: The adjacency has a cycle, or contradicts what is known.
        """
        depth = depth_of_nodes(self.constraints.with_order(adjacency))
        self.node_score.copy_(self.constraints.free_scores(depth.to(self.node_score)))
        rows, columns = self._pairs
        joined = (adjacency + adjacency.T)[rows, columns] > 0
        self.pair_weight.copy_(joined * _SATURATED * self.temperature)
        for node, logits in enumerate(self.conditional_logits):
            logits.copy_(conditional_table(joint, node, adjacency[:, node]).clamp(min=_RAREST).log())

    @torch.no_grad()
    def project(self) -> None:
        """Put B back to its range after a gradient step, so that zeros are exact and can be left again."""
        self.pair_weight.clamp_(min=0)
