r"""A graph whose scores, edges and tables are random: sites of the model, with a declared prior.

$$\xi_\ell \sim \mathrm{Normal}(0, 1), \qquad
  p(S_\ell = S \mid \xi) = \prod_{k \in S} E_{k\ell} \prod_{k \notin S, k \ne \ell} (1 - E_{k\ell}), \qquad
  \theta_\ell(\cdot \mid c_S) \sim \mathrm{Dirichlet}\Bigl(\frac{s}{C_\ell \prod_{k \in S} C_k}\Bigr)$$

with $E_{k\ell} = e_{k\ell} \tanh(\mathrm{ReLU}(\xi_\ell - \xi_k) / \beta)$ and e = 1/2 beforehand: given an order,
every pair is joined or not with equal chance (as β goes to 0). S are the parents of a node, one set for the whole data;
their support is acyclic for every ξ. Tables are those of BDeu.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from causalpima.models.dag import FamilyTables
from causalpima.models.graph.base import EDGE_THRESHOLD, EdgeConstraints, NodeGraph, ScoreForm, depth_of_nodes

__all__ = ["BayesianGraph"]

_PRIOR_SHARE = 0.5
_ALMOST_ONE = 1 - 1e-6
_SMALLEST = 1e-30


class BayesianGraph(NodeGraph):
    r"""Random scores, parents and tables in training mode; else one value of each, which the guide writes here.

    Nothing has a gradient: what is learned is the guide's. Buffers: `node_score` ξ `[L]`, `edge_share` e of each pair,
    `table_0`, ... θ per node `[K_l, C_l]` (`FamilyTables`), `temperature` β. Outside of training, p(N_l | N) is the
    mixture $\sum_S p(S)\, \theta_{\ell \\mid S}$ at these values.

    Args:
        outcomes: Number of outcomes of each node, all >= 2.
        temperature: Initial β, positive.
        equivalent_sample_size: s.
        constraints: Edges that are fixed; None: none.
    """

    _pairs: Tensor
    node_score: Tensor
    edge_share: Tensor
    temperature: Tensor

    def __init__(
        self,
        outcomes: Sequence[int],
        temperature: float = 1.0,
        equivalent_sample_size: float = 1.0,
        constraints: EdgeConstraints | None = None,
    ) -> None:
        super().__init__(outcomes)
        n = len(self.outcomes)
        self.constraints = EdgeConstraints.none(n) if constraints is None else constraints
        self.families = FamilyTables(self.outcomes)
        self.equivalent_sample_size = equivalent_sample_size
        self.register_buffer("_pairs", torch.triu_indices(n, n, offset=1))
        self.register_buffer("node_score", torch.zeros(n))
        self.register_buffer("edge_share", torch.full((n * (n - 1) // 2,), _PRIOR_SHARE))
        self.register_buffer("temperature", torch.tensor(float(temperature)))
        for node, concentration in enumerate(self.concentration()):
            self.register_buffer(f"table_{node}", torch.full_like(concentration, 1 / self.outcomes[node]))

    def concentration(self) -> list[Tensor]:
        """Dirichlet parameters of the prior per node, `[K_l, C_l]`, in double precision: they are small."""
        return [part.double() for part in self.families.concentration(self.equivalent_sample_size)]

    def table(self, node: int) -> Tensor:
        """θ of a node outside of training, `[K_l, C_l]`."""
        return getattr(self, f"table_{node}")

    @torch.no_grad()
    def sample_log_tables(self) -> Tensor:
        """Sites `node_score`, `parents_0`, ..., `tables_0`, ... in training mode; then log p(N_l | parents)."""
        if not self.training:
            return self.conditional_log_tables()
        weights = self.parent_weights(self.sample_scores(), torch.full_like(self.edge_share, _PRIOR_SHARE).double())
        log_tables = []
        for node, concentration in enumerate(self.concentration()):
            parents = pyro.sample(f"parents_{node}", dist.Categorical(weights[node]))
            table = pyro.sample(f"tables_{node}", dist.Dirichlet(concentration).to_event(1))
            log_tables.append(table.flatten()[self.families.entry[node, parents]].clamp(min=_SMALLEST).log())
        return torch.stack(log_tables).to(self.node_score).reshape(self.n_nodes, *self.outcomes)

    def sample_parents(self, log_evidence: Tensor) -> None:
        """The same with tables integrated out, and parents to be enumerated: sites of scores and parents.

        Args:
            log_evidence: log marginal likelihood of (expected) counts of every family, `[L, 2^(L-1)]`.
        """
        weights = self.parent_weights(self.sample_scores(), torch.full_like(self.edge_share, _PRIOR_SHARE).double())
        for node in range(self.n_nodes):
            choice = dist.Categorical(weights[..., node, :])
            parents = pyro.sample(f"parents_{node}", choice, infer={"enumerate": "parallel"})
            pyro.factor(f"evidence_{node}", log_evidence[node, parents])

    def sample_scores(self) -> Tensor:
        """The site `node_score` of the model, in double precision."""
        return pyro.sample("node_score", dist.Normal(torch.zeros_like(self.node_score).double(), 1.0).to_event(1))

    def strength(self, node_score: Tensor, edge_share: Tensor) -> Tensor:
        """E, `[*b, L, L]`, of scores ξ `[*b, L]` and e of each pair; acyclic support, and what is known."""
        score = self._ordered(node_score)
        ascent = torch.relu(score.unsqueeze(-2) - score.unsqueeze(-1))
        upper = edge_share.new_zeros(self.n_nodes, self.n_nodes).index_put(tuple(self._pairs), edge_share)
        return self.constraints.applied((upper + upper.T) * torch.tanh(ascent / self.temperature))

    def parent_weights(self, node_score: Tensor, edge_share: Tensor) -> Tensor:
        """p(S_l | ξ) of every set of parents, `[*b, L, 2^(L-1)]`."""
        return self._weights(self.strength(node_score, edge_share))

    def edge_strength(self) -> Tensor:
        """E `[L, L]` at the scores and shares that were written here."""
        return self.strength(self.node_score, self.edge_share)

    def conditional_log_tables(self) -> Tensor:
        """log p(N_l | parents), `[L, C_1, ..., C_L]`, at what was written here."""
        shares = torch.stack([self.table(node).flatten()[self.families.entry[node]] for node in range(self.n_nodes)])
        mixed = (self._weights(self.edge_strength()).to(shares).unsqueeze(-1) * shares).sum(1)
        return mixed.clamp(min=_SMALLEST).log().to(self.node_score).reshape(self.n_nodes, *self.outcomes)

    def causal_order(self) -> list[int]:
        """Nodes sorted so that causes come before effects."""
        score = self.constraints.ordered(self.node_score).tolist()
        return sorted(self.constraints.order, key=lambda node: score[node])

    def adjacency(self) -> Tensor:
        """Edges, bool `[L, L]`: E > 0.5."""
        return self.edge_strength() > EDGE_THRESHOLD

    def log_prior(self) -> Tensor:
        """0: the prior is in the sites."""
        return self.node_score.new_zeros(())

    def draw_noise(self, scale: float) -> None:
        """Nothing: scores are random already."""

    def project(self) -> None:
        """Nothing: there are no parameters."""

    def set_temperature(self, temperature: float) -> None:
        """Set β."""
        self.temperature.fill_(temperature)

    def score_form(self) -> ScoreForm:
        """ξ, and the B that gives E at these scores and β: `B = β atanh(E) / (ξ_j - ξ_i)`."""
        score, strength = self.constraints.ordered(self.node_score), self.edge_strength().clamp(max=_ALMOST_ONE)
        ascent = torch.relu(score.unsqueeze(0) - score.unsqueeze(1))
        upward = torch.where(ascent > 0, self.temperature * torch.atanh(strength) / ascent.clamp(min=_SMALLEST), 0.0)
        return ScoreForm(score, upward + upward.T, float(self.temperature))

    @torch.no_grad()
    def take_over(self, adjacency: Tensor, joint: Tensor) -> None:
        """Become a given graph with a given p(N); see `NodeGraph.take_over`."""
        depth = depth_of_nodes(self.constraints.with_order(adjacency))
        self.node_score.copy_(self.constraints.free_scores(depth.to(self.node_score)))
        rows, columns = self._pairs
        self.edge_share.copy_((adjacency + adjacency.T)[rows, columns] > 0)
        self.write_tables(self.families.counts(joint.double().flatten()))

    @torch.no_grad()
    def write_tables(self, concentration: Sequence[Tensor]) -> None:
        """Set the tables to the means of Dirichlet distributions, per node `[K_l, C_l]`."""
        for node, part in enumerate(concentration):
            smoothed = part + _SMALLEST
            self.table(node).copy_(smoothed / smoothed.sum(-1, keepdim=True))

    def _ordered(self, node_score: Tensor) -> Tensor:
        if node_score.dim() == 1:
            return self.constraints.ordered(node_score)
        flat = torch.vmap(self.constraints.ordered)(node_score.reshape(-1, self.n_nodes))
        return flat.reshape(node_score.shape)

    def _weights(self, strength: Tensor) -> Tensor:
        nodes = torch.arange(self.n_nodes, device=strength.device)
        member = (self.families.sets[..., None] >> nodes & 1).bool()
        own = torch.eye(self.n_nodes, dtype=torch.bool, device=strength.device).unsqueeze(1)
        into = strength.mT.unsqueeze(-2)
        return torch.where(own, 1.0, torch.where(member, into, 1 - into)).prod(-1)
