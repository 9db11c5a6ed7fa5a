r"""q(ξ, parents, tables): the guide's side of a `BayesianGraph`.

$$q(\xi_\ell) = \mathrm{Normal}(m_\ell, s_\ell), \qquad
  q(S_\ell = S \mid \xi) = \prod_{k \in S} E_{k\ell} \prod_{k \notin S, k \ne \ell} (1 - E_{k\ell}), \qquad
  q(\theta_{\ell \mid S} \mid S) = \mathrm{Dirichlet}(\alpha + n_{\ell \mid S})$$

with $E_{k\ell} = \sigma(\phi_{k\ell}) \tanh(\mathrm{ReLU}(\xi_\ell - \xi_k) / \beta)$: a Bernoulli variable per
pair, and the direction from the scores. n are expected counts; the Dirichlet is the best q for them, so that a table
costs what its parameters are worth (the Occam factor of BDeu). Tables of families that are not drawn stay at their
prior.
"""

from __future__ import annotations

from itertools import permutations

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor, nn

from models.graph.bayesian import BayesianGraph

__all__ = ["GraphGuide"]

_FIRST_SCALE = 0.2
_SPACING = 1.2
_STEEP = 20.0
_CLEARLY_BETTER = 3.0
_LEAST_CHANCE = 0.01


class GraphGuide(nn.Module):
    """The guide program of a `BayesianGraph`; draws in training mode only, as the graph does.

    Parameters: `score_loc` m, `score_log_scale` log s, `edge_logit` φ. Buffers: `count_0`, ... n per node `[K_l, C_l]`.

    Args:
        graph: The graph; not a part of the guide, whose values `write_into` sets.
    """

    def __init__(self, graph: BayesianGraph) -> None:
        super().__init__()
        self._graph = (graph,)  # in a tuple, so that it is no submodule: weights by name would hold it twice
        self.score_loc = nn.Parameter(torch.randn(graph.n_nodes))
        self.score_log_scale = nn.Parameter(torch.full((graph.n_nodes,), _FIRST_SCALE).log())
        self.edge_logit = nn.Parameter(torch.zeros_like(graph.edge_share))
        for node, part in enumerate(graph.concentration()):
            self.register_buffer(f"count_{node}", torch.zeros_like(part))

    @property
    def graph(self) -> BayesianGraph:
        """The graph that this is the guide of."""
        return self._graph[0]

    @torch.no_grad()
    def forward(self) -> None:
        """Draws for a step of the networks: no gradient for q, which is moved by `sample_parents`' bound alone."""
        if not self.training:
            return
        weights = self.graph.parent_weights(self._sample_scores(), torch.sigmoid(self.edge_logit.double()))
        for node, prior in enumerate(self.graph.concentration()):
            parents = pyro.sample(f"parents_{node}", dist.Categorical(weights[node]))
            is_drawn = (self.graph.families.owner(node) == parents).unsqueeze(-1)
            concentration = prior + is_drawn * self.count(node)
            pyro.sample(f"tables_{node}", dist.Dirichlet(concentration).to_event(1))

    def sample_parents(self) -> None:
        """Sites of scores and parents, the parents enumerated; tables are integrated out."""
        weights = self.graph.parent_weights(self._sample_scores(), torch.sigmoid(self.edge_logit.double()))
        for node in range(self.graph.n_nodes):
            choice = dist.Categorical(weights[..., node, :])
            pyro.sample(f"parents_{node}", choice, infer={"enumerate": "parallel"})

    def log_evidence(self) -> Tensor:
        """BDeu of the expected counts of every family, `[L, 2^(L-1)]`."""
        counts = [self.count(node) for node in range(self.graph.n_nodes)]
        return self.graph.families.log_evidence(counts, self.graph.concentration())

    def count(self, node: int) -> Tensor:
        """Expected counts of the families of a node, `[K_l, C_l]`."""
        return getattr(self, f"count_{node}")

    @torch.no_grad()
    def set_counts(self, cell_count: Tensor) -> None:
        """Take the expected counts of all families from those of the cells, `[C]`; with the first, the best order."""
        is_first = all(not bool(self.count(node).any()) for node in range(self.graph.n_nodes))
        for node, part in enumerate(self.graph.families.counts(cell_count.double().flatten())):
            self.count(node).copy_(part)
        self._start_at_best_order(0.0 if is_first else _CLEARLY_BETTER)

    def _start_at_best_order(self, least: float) -> None:
        r"""Go to the order of the nodes with the highest evidence, where it is better than the present one by so much.

        The evidence of an order is the product over nodes of $\sum_S p(S)\, e^{score(\ell \mid S)}$ over sets S of
        nodes before (Friedman and Koller 2003). Gradients hardly reverse an edge: in between, it is absent.
        """
        n_nodes, scores = self.graph.n_nodes, self.log_evidence()
        orders = torch.tensor(list(permutations(range(n_nodes))), device=scores.device)
        ranks = torch.argsort(torch.cat([torch.argsort(self.score_loc)[None], orders]), dim=-1).double()
        weights = self.graph.parent_weights(_STEEP * ranks, torch.full_like(self.edge_logit, 0.5).double())
        joint = weights.log() + scores
        evidence = joint.logsumexp(-1).sum(-1)
        best = int(evidence.argmax())
        if float(evidence[best] - evidence[0]) >= least:
            self.score_loc.copy_(_SPACING * (ranks[best] - (n_nodes - 1) / 2))
            self.score_log_scale.fill_(_FIRST_SCALE).log_()
            self.edge_logit.copy_(torch.logit(self._chances(torch.softmax(joint[best], -1)), eps=_LEAST_CHANCE))

    def _chances(self, parents: Tensor) -> Tensor:
        """p(i - j) of every pair, `[P]`, from p(S_l), `[L, 2^(L-1)]`."""
        nodes = torch.arange(self.graph.n_nodes, device=parents.device)
        member = (self.graph.families.sets[..., None] >> nodes & 1).to(parents)
        into = torch.einsum("ls,lsk->kl", parents, member)
        rows, columns = torch.triu_indices(len(nodes), len(nodes), offset=1)
        return (into + into.T)[rows, columns]

    @torch.no_grad()
    def restart(self) -> None:
        """Forget what was learned, as after new names of the cells."""
        self.score_loc.normal_()
        self.score_log_scale.fill_(_FIRST_SCALE).log_()
        self.edge_logit.zero_()
        for node in range(self.graph.n_nodes):
            self.count(node).zero_()

    @torch.no_grad()
    def write_into_graph(self) -> None:
        """Set the graph to m, σ(φ) and the posterior means of the tables: p(N) outside of training."""
        self.graph.node_score.copy_(self.score_loc)
        self.graph.edge_share.copy_(torch.sigmoid(self.edge_logit))
        prior = self.graph.concentration()
        self.graph.write_tables([part + self.count(node) for node, part in enumerate(prior)])

    @torch.no_grad()
    def edge_probability(self, n_draws: int = 10000, seed: int = 0) -> Tensor:
        """q(i -> j), `[L, L]`: the mean of E over draws of ξ."""
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(n_draws, self.graph.n_nodes, generator=generator, dtype=torch.float64).to(
            self.score_loc.device
        )
        scores = self.score_loc + self.score_log_scale.exp() * noise
        return self.graph.strength(scores, torch.sigmoid(self.edge_logit.double())).mean(0)

    def _sample_scores(self) -> Tensor:
        loc, scale = self.score_loc.double(), self.score_log_scale.double().exp()
        return pyro.sample("node_score", dist.Normal(loc, scale).to_event(1))
