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
from typing import Any

import torch
from torch import Tensor, nn

from causalpima.models import dag
from causalpima.models.dag import (
    GROWTH,
    PROGRESS,
    acyclic_edges,
    augmented_cost,
    curl_free_potential,
    log_determinant_cycles,
    polynomial_cycles,
    spectral_radius,
    trace_exponential,
)
from causalpima.models.graph.base import EDGE_THRESHOLD, EdgeConstraints, NodeGraph, ScoreForm
from causalpima.models.graph.table import TableGraph

__all__ = [
    "DagmaGraph",
    "NocurlGraph",
    "NotearsGraph",
    "RelaxedGraph",
    "chain_tables",
]


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


# The graph of NOTEARS: no cycles by an augmented Lagrangian (Zheng et al. 2018, NeurIPS; 2020, AISTATS).
#
# With $h = \operatorname{tr} e^{E \circ E} - L$, the penalty is $\alpha h + \frac{\rho}{2} h^2$. After each stage ρ
# grows
# tenfold where h has not come down to a quarter of what it was; else α grows by ρ h.


_LARGEST = 1e16


class NotearsGraph(RelaxedGraph):
    """Buffers: `multiplier` α, `stiffness` ρ, `last_cycles` h of the last stage that brought it down enough.

    Args:
        tolerance: h below which there are no cycles.
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    multiplier: Tensor
    stiffness: Tensor
    last_cycles: Tensor

    def __init__(self, *args: Any, tolerance: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tolerance = tolerance
        self.register_buffer("multiplier", torch.zeros(()))
        self.register_buffer("stiffness", torch.ones(()))
        self.register_buffer("last_cycles", torch.tensor(torch.inf))

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """α h + ρ h² / 2."""
        return augmented_cost(trace_exponential(strength), self.multiplier, self.stiffness)

    def cycles(self) -> float:
        """h_exp."""
        return float(trace_exponential(self.soft_strength().detach().double()))

    def next_stage(self) -> None:
        """ρ ten times as large where h came down too little; else α + ρ h."""
        h = self.cycles()
        if h > PROGRESS * float(self.last_cycles):
            self.stiffness.mul_(GROWTH)
        else:
            self.multiplier.add_(h * self.stiffness)
            self.last_cycles.fill_(h)

    def is_done(self) -> bool:
        """h is below the tolerance, or ρ as large as it gets, and a first stage was solved."""
        is_first = bool(self.last_cycles.isinf())
        return not is_first and (self.cycles() <= self.tolerance or float(self.stiffness) >= _LARGEST)


# The graph of DAGMA: no cycles by a log-determinant and a central path (Bello et al. 2022, NeurIPS).
#
# Minimised is, for μ = 0.1, 0.01, 0.001, 0.0001 one after the other, μ (score) + h with
# $h = -\log\det(sI - E \circ E) + L \log s$ and s = 1, as in its non-linear version: per sample, h / μ. A gradient step
# that leaves the domain, where the spectral radius of E∘E is below s, is drawn back into it.


_S = 1.0
_FIRST_MU = 0.1
_FACTOR = 0.1
_STAGES = 4
_DRAWN_BACK = 0.95


class DagmaGraph(RelaxedGraph):
    """Buffer: `stage`, the number of stages that are solved.

    Args:
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    stage: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("stage", torch.zeros((), dtype=torch.long))

    def path_weight(self) -> float:
        """μ of the present stage; of the last one where all are solved."""
        return float(_FIRST_MU * _FACTOR ** min(int(self.stage), _STAGES - 1))

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """h / μ."""
        return log_determinant_cycles(strength, _S) / self.path_weight()

    def cycles(self) -> float:
        """h_logdet."""
        return float(log_determinant_cycles(self.soft_strength().detach().double(), _S))

    @torch.no_grad()
    def project(self) -> None:
        """Put strengths back to [0, 1), and into the domain of h: all of them smaller by the same factor."""
        super().project()
        while spectral_radius(self.soft_strength()) >= _S:
            self.edge.mul_(_DRAWN_BACK)

    def next_stage(self) -> None:
        """μ a tenth."""
        self.stage.add_(1)

    def is_done(self) -> bool:
        """All four stages are solved."""
        return int(self.stage) >= _STAGES


# The graph of NoCurl: weights times the gradient of a potential (Yu et al. 2021, ICML), in its two steps.
#
# A graph without cycles is $E = W \circ \mathrm{ReLU}(\operatorname{grad} \varphi)$ with
# $(\operatorname{grad} \varphi)_{ij} = \varphi_j - \varphi_i$. First E is free, with penalties 10 h and then 1000 h
# ($h = \operatorname{tr}(I + E \circ E / L)^L - L$). The potential is then the curl-free part of who leads where along
# strengths above 0.3, and stays; W is fitted anew. With φ given and W >= 0 free, E_ij is any number where φ_i < φ_j and
# 0
# elsewhere, and that is how it is kept here.


_WEIGHTS = (10.0, 1000.0)
_KEPT = 0.3


class NocurlGraph(RelaxedGraph):
    """Buffers: `stage`, the number of stages that are solved; `potential` φ `[L]`, 0 until there is one.

    A potential keeps the order that is known of the nodes (`EdgeConstraints.ordered`).

    Args:
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    stage: Tensor
    potential: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("stage", torch.zeros((), dtype=torch.long))
        self.register_buffer("potential", torch.zeros(self.n_nodes))

    def open_edges(self) -> Tensor:
        """All at first; where there is a potential, those along which it grows."""
        if int(self.stage) < len(_WEIGHTS):
            return super().open_edges()
        return self.potential.unsqueeze(0) > self.potential.unsqueeze(1)

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """10 h, then 1000 h; 0 where there is a potential."""
        if int(self.stage) < len(_WEIGHTS):
            return _WEIGHTS[int(self.stage)] * polynomial_cycles(strength)
        return strength.new_zeros(())

    def cycles(self) -> float:
        """h_poly."""
        return float(polynomial_cycles(self.soft_strength().detach().double()))

    @torch.no_grad()
    def next_stage(self) -> None:
        """The next weight; after the last one the potential, with strengths as at first."""
        if int(self.stage) == len(_WEIGHTS) - 1:
            found = curl_free_potential(self.soft_strength() > _KEPT)
            self.potential.copy_(self.constraints.ordered(found.to(self.potential)))
            self.edge.fill_(self.first_strength())
        self.stage.add_(1)

    def is_done(self) -> bool:
        """Both penalties and the fit along the potential are solved."""
        return int(self.stage) > len(_WEIGHTS)
