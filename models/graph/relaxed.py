r"""A graph as a matrix of free strengths that a penalty keeps from cycles: what the rivals of the paper's graph share.

While E has cycles, the product of its tables is no distribution (docs/errata.md, item 10), so that

$$p(N) = \frac{1}{Z} \prod_\ell T^\ell, \qquad Z = \sum_c \prod_\ell T^\ell(c),$$

with the tables $T^\ell$ of E as everywhere (`models.dag`); Z = 1 where E has none. Maximised is, per sample,

$$\mathbb{E} \log p(N) - \lambda_1 \sum_{k\ell} E_{k\ell} - \tfrac12 \lambda_2 \|W\|^2 - \text{penalty of cycles},$$

W being the logits of the tables. In the end the graph becomes a hard one: edges above one half, the weakest on cycles
left out, with tables in closed form.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from models import dag
from models.acyclicity import acyclic_edges
from models.graph.base import EDGE_THRESHOLD, NodeGraph, ScoreForm
from models.graph.constraints import EdgeConstraints
from models.graph.table import TableGraph

__all__ = ["RelaxedGraph", "chain_tables"]

# E = 1 has no gradient in the tables (`models.dag`), so that an edge could not leave it.
_STRONGEST = 1 - 1e-6
_START = 0.5


class RelaxedGraph(NodeGraph):
    """Strengths that gradients move under a penalty of cycles; then a hard graph.

    Parameters: `edge` `[L, L]`, kept in [0, 1) by `project`, and `conditional_logits` W `[L, C_1, ..., C_L]`. Buffers:
    `n_samples`, which the penalties count as often as; `is_hard`; edges and tables of `hard`, which is what the graph
    is once `is_hard`; and what the penalty of a subclass remembers.

    Forbidden edges have strength 0 and required ones 1, exactly and at all times (`EdgeConstraints`).

    Args:
        outcomes: Number of outcomes of each node, all >= 2.
        edge_penalty: λ1.
        table_penalty: λ2.
        constraints: Edges that are fixed; None: none.

    Raises:
        ValueError: No node, or a node with fewer than two outcomes.
    """

    n_samples: Tensor
    is_hard: Tensor

    def __init__(
        self,
        outcomes: Sequence[int],
        edge_penalty: float = 0.01,
        table_penalty: float = 0.01,
        constraints: EdgeConstraints | None = None,
    ) -> None:
        super().__init__(outcomes)
        n = len(self.outcomes)
        self.edge_penalty, self.table_penalty = edge_penalty, table_penalty
        self.constraints = EdgeConstraints.none(n) if constraints is None else constraints
        self.edge = nn.Parameter(torch.full((n, n), self.first_strength()))
        self.conditional_logits = nn.Parameter(0.1 * torch.randn(n, *self.outcomes))
        self.hard = TableGraph(self.outcomes)
        self.register_buffer("n_samples", torch.ones(()))
        self.register_buffer("is_hard", torch.tensor(False))
        self._is_hard = False

    @abstractmethod
    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """What cycles cost now, per sample, a scalar."""

    @abstractmethod
    def next_stage(self) -> None:
        """The next stage of the schedule of the penalty, once what it asked for is solved."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether the schedule has come to its end."""

    @abstractmethod
    def cycles(self) -> float:
        """h of the present strengths."""

    def first_strength(self) -> float:
        """Strength of all edges at first: 1/2, or less where E∘E would have a spectral radius above 1/2."""
        return min(_START, (_START / max(self.n_nodes - 1, 1)) ** 0.5)

    def open_edges(self) -> Tensor:
        """Which edges gradients may give a strength, bool `[L, L]`."""
        return ~torch.eye(self.n_nodes, dtype=torch.bool, device=self.edge.device)

    def edge_strength(self) -> Tensor:
        """E `[L, L]`: soft, with cycles, while it is trained; then 0 or 1."""
        return self.hard.edge_strength() if self._is_hard else self.soft_strength()

    def soft_strength(self) -> Tensor:
        """E `[L, L]` of the parameters."""
        return self.constraints.applied(torch.where(self.open_edges(), self.edge, 0.0))

    def log_joint(self) -> Tensor:
        """log p(N), `[C_1, ..., C_L]`; normalised, whatever the cycles of E."""
        if self._is_hard:
            return self.hard.log_joint()
        product = dag.log_joint(self.conditional_logits, self.soft_strength())
        return product - product.logsumexp(list(range(self.n_nodes)))

    def conditional_log_tables(self) -> Tensor:
        """log p(N_l | parents) of the hard graph; before, log p(N_l | N_1, ..., N_{l-1}): cycles leave no others."""
        return self.hard.conditional_log_tables() if self._is_hard else chain_tables(self.log_joint())

    def sample_log_tables(self) -> Tensor:
        """`conditional_log_tables`: nothing is random."""
        return self.conditional_log_tables()

    def causal_order(self) -> list[int]:
        """Nodes sorted so that causes come before effects; before the end, in the order of `conditional_log_tables`."""
        return self.hard.causal_order() if self._is_hard else list(range(self.n_nodes))

    def adjacency(self) -> Tensor:
        """Edges as they are, or would be, read off at the end, bool `[L, L]`; never with a cycle."""
        return self.hard.adjacency() if self._is_hard else self._read_off()

    def log_prior(self) -> Tensor:
        """Penalties of all samples, negative; 0 of the hard graph."""
        if self._is_hard:
            return self.hard.log_prior()
        strength = self.soft_strength()
        tables = 0.5 * self.table_penalty * self.conditional_logits.square().sum()
        return -self.n_samples * (self.edge_penalty * strength.sum() + tables + self.cycle_penalty(strength))

    def draw_noise(self, scale: float) -> None:
        """Nothing: there are no scores."""

    def set_temperature(self, temperature: float) -> None:
        """Nothing: strengths depend on none."""

    def count_samples(self, n_samples: float) -> None:
        """Set how many samples the penalties count for."""
        self.n_samples.fill_(n_samples)

    @torch.no_grad()
    def project(self) -> None:
        """Put strengths back to [0, 1)."""
        self.edge.clamp_(0.0, _STRONGEST)

    @torch.no_grad()
    def end_epoch(self) -> dict[str, float]:
        """The next stage of the schedule, until the graph is hard; h for the record."""
        if self._is_hard:
            return {}
        h = self.cycles()
        if not self.is_done():
            self.next_stage()
        return {"acyclicity": h}

    def score_form(self) -> ScoreForm:
        """Depth of the nodes, 1 for pairs that are joined, temperature 0."""
        return (self.hard if self._is_hard else TableGraph(self.outcomes, self._read_off()).to(self.edge)).score_form()

    @torch.no_grad()
    def settle(self, cell_count: Tensor, pseudo_count: float) -> None:
        """Become hard: the edges that are read off, with tables in closed form.

        Args:
            cell_count: n_c, `[C]`, not negative.
            pseudo_count: a > 0 of the tables (`TableGraph`).
        """
        if not self._is_hard:
            self._harden(self._read_off())
        self.hard.fit(cell_count, pseudo_count)

    @torch.no_grad()
    def take_over(self, adjacency: Tensor, joint: Tensor) -> None:
        """Become a given graph with a given p(N), hard; see `NodeGraph.take_over`."""
        self.constraints.with_order(adjacency)
        self._harden(adjacency)
        self.hard.take_over_joint(joint)

    @property
    def is_settled(self) -> bool:
        """Whether the graph is hard."""
        return self._is_hard

    def _harden(self, edges: Tensor) -> None:
        self.hard.set_edges(edges)
        self.is_hard.fill_(True)
        self._is_hard = True

    @torch.no_grad()
    def _read_off(self) -> Tensor:
        return acyclic_edges(self.soft_strength(), EDGE_THRESHOLD, self.constraints.required)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._is_hard = bool(state_dict.get(f"{prefix}is_hard", self._is_hard))


def chain_tables(log_joint: Tensor) -> Tensor:
    """log p(N_l | N_1, ..., N_{l-1}) of a p(N), `[L, C_1, ..., C_L]`: their sum is log p(N).

    Args:
        log_joint: `[C_1, ..., C_L]`, normalised.
    """
    n_nodes = log_joint.dim()
    marginals = [log_joint.logsumexp(list(range(k, n_nodes)), keepdim=True) for k in range(n_nodes)] + [log_joint]
    tables = [after - before for before, after in pairwise(marginals)]
    return torch.stack([table.expand_as(log_joint) for table in tables])
