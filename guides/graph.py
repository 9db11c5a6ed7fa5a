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

from collections.abc import Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor, nn
from torch.distributions import constraints

from causalpima.guides.encoders import GaussianParameters
from causalpima.models import gaussian
from causalpima.models.graph.bayesian import BayesianGraph

__all__ = [
    "GraphGuide",
    "MixtureNormal",
    "MixtureParameters",
]


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


# q(Z | X) as a mixture of Gaussians with given weights: its parameters, and as a Pyro distribution.


class MixtureParameters(NamedTuple):
    r"""q(z) = Σ_s w_s N(z; μ_s, diag σ_s²) with weights that are not learned; S Gaussians.

    It has the interface of `GaussianParameters`. `loc`, `log_variance` and `scale` are moments of the whole: the mean,
    and the variance of every dimension. What is an expectation of a Gaussian term is exact, a sum over `parts`; the
    entropy has no closed form, and `entropy_at` estimates it without bias.

    Attributes:
        locs: μ_s, `[*batch, S, latent]`; finite filler where the weight is zero.
        log_variances: log σ_s², `[*batch, S, latent]`.
        log_weights: log w_s, `[*batch, S]`, -infinity where a sample lacks what the Gaussian is made of.
    """

    locs: Tensor
    log_variances: Tensor
    log_weights: Tensor

    @property
    def loc(self) -> Tensor:
        """Mean `Σ_s w_s μ_s`, `[*batch, latent]`."""
        return (self.log_weights.exp().unsqueeze(-1) * self.locs).sum(-2)

    @property
    def log_variance(self) -> Tensor:
        """Logarithm of the variances `Σ_s w_s [σ_s² + (μ_s - μ)²]`, `[*batch, latent]`."""
        spread = self.log_variances.exp() + (self.locs - self.loc.unsqueeze(-2)).square()
        return (self.log_weights.exp().unsqueeze(-1) * spread).sum(-2).log()

    @property
    def scale(self) -> Tensor:
        """Standard deviations, `[*batch, latent]`."""
        return (0.5 * self.log_variance).exp()

    @property
    def _scales(self) -> Tensor:
        return (0.5 * self.log_variances).exp()

    def draw(self, noise: Tensor | None = None, uniform: Tensor | None = None) -> Tensor:
        """A Gaussian by its weight, then `μ_s + σ_s ε`, `[*draws, *batch, latent]`.

        The weights are fixed, so that gradients along the drawn Gaussians are without bias.

        Args:
            noise: ε, broadcasts to `[*draws, *batch, latent]`; None: one draw, from torch's global generator.
            uniform: In [0, 1), broadcasts to `[*draws, *batch]`, what the Gaussian is chosen by; None: from torch's
                global generator.
        """
        noise = torch.randn_like(self.locs[..., 0, :]) if noise is None else noise
        shape = np.broadcast_shapes(noise.shape, self.locs[..., 0, :].shape)
        uniform = torch.rand(shape[:-1], dtype=noise.dtype, device=noise.device) if uniform is None else uniform
        loc, scale = self._chosen(uniform.expand(shape[:-1]))
        return loc + scale * noise

    def _chosen(self, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale of the Gaussian in whose share of [0, 1) the number falls; none without weight is chosen."""
        below = self.log_weights.exp().cumsum(-1)
        index = (below / below[..., -1:] <= uniform.unsqueeze(-1)).sum(-1)
        where = index[..., None, None].expand(*index.shape, 1, self.locs.shape[-1])
        parts = (part.expand(*index.shape, *part.shape[-2:]) for part in (self.locs, self._scales))
        loc, scale = (part.gather(-2, where).squeeze(-2) for part in parts)
        return loc, scale

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log q(value) = log Σ_s w_s N(value; μ_s, σ_s²), `[*draws, *batch]`."""
        mask = None if present is None else present.unsqueeze(-2)
        of_parts = gaussian.log_density(value.unsqueeze(-2), self.locs, self._scales, mask)
        return torch.logsumexp(self.log_weights + of_parts, dim=-1)

    def entropy_at(self, sample: Tensor, present: Tensor | None = None) -> Tensor:
        """`-log q(z)` at the drawn z, `[*batch]`: an estimate of the entropy without bias."""
        return -self.log_density(sample, present)

    def parts(self) -> tuple[tuple[Tensor, GaussianParameters], ...]:
        """The Gaussians, each with its weight `[*batch]`."""
        split = (part.unbind(-2) for part in (self.locs, self.log_variances))
        gaussians = (GaussianParameters(*pair) for pair in zip(*split, strict=True))
        return tuple(zip(self.log_weights.exp().unbind(-1), gaussians, strict=True))

    def distribution(self) -> MixtureNormal:
        """As a Pyro program draws from it."""
        return MixtureNormal(self)


class MixtureNormal(TorchDistribution):
    r"""Σ_s w_s N(μ_s, diag σ_s²) with fixed weights.

    `rsample` is pathwise: a component by its weight, then `μ_s + σ_s ε`. As the weights have no gradient,
    `∇ E_q f = Σ_s w_s ∇ E_{N_s} f`, and what flows along the chosen component is an estimate of it without bias.

    Args:
        parameters: The mixture, `[*batch, S, J]`.
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.independent(constraints.real, 1)
    has_rsample = True

    def __init__(self, parameters: MixtureParameters, batch_shape: Sequence[int] | None = None) -> None:
        self.parameters = parameters
        shape = parameters.log_weights.shape[:-1] if batch_shape is None else batch_shape
        super().__init__(torch.Size(shape), parameters.locs.shape[-1:], validate_args=False)

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, J]`."""
        return self.parameters.loc.expand(*self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MixtureNormal:
        """The same distribution with a larger batch shape; the tensors are not expanded."""
        return MixtureNormal(self.parameters, batch_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws, reparametrised within their component."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.parameters.locs.dtype, device=self.parameters.locs.device)
        return self.parameters.draw(noise)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of `value` `[*b, J]`."""
        log_density = self.parameters.log_density(value)
        return log_density.expand(np.broadcast_shapes(log_density.shape, self.batch_shape))
