"""The terms of the objectives written out with torch.distributions, one component after the other: the oracle."""

from __future__ import annotations

from typing import NamedTuple

import torch
from ladder_example import Example
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal

from causalpima.inference.objectives import closed_form, responsibilities
from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.responsibilities import ObjectiveName, components


class Pieces(NamedTuple):
    """What every objective is made of, for K components; `[batch, K]` unless said otherwise.

    log_weight `[K]`; log_density at z and expected under q(z); log_likelihood at z, summed over modalities that are
    present, and the part of it that does not depend on z; log_q and entropy of q(z) `[batch]`.
    """

    log_weight: Tensor
    log_density: Tensor
    expected_log_density: Tensor
    log_likelihood: Tensor
    latent_free: Tensor
    log_q: Tensor
    entropy: Tensor

    @property
    def log_gamma(self) -> Tensor:
        """γ(z) = p(N | z)."""
        return torch.log_softmax(self.log_weight + self.log_density, dim=-1)

    @property
    def log_exact(self) -> Tensor:
        """p(N | z, X)."""
        return torch.log_softmax(self.log_weight + self.log_density + self.log_likelihood, dim=-1)

    @property
    def log_geometric(self) -> Tensor:
        """r*, the best q(N | X) that knows no z."""
        return torch.log_softmax(self.log_weight + self.expected_log_density + self.latent_free, dim=-1)

    def collapsed(self) -> Tensor:
        """T1 per sample, `[batch]`."""
        return torch.logsumexp(self.log_weight + self.log_density + self.log_likelihood, dim=-1) - self.log_q

    def closed(self, log_r: Tensor) -> Tensor:
        """Mean field with given r and all constants, z integrated, `[batch]`."""
        inside = self.log_weight + self.expected_log_density + self.log_likelihood - log_r
        return (log_r.exp() * inside).sum(-1) + self.entropy


def pieces(example: Example) -> Pieces:
    """The pieces at the z that the noise of the example draws."""
    posterior, z, mixture = example.posterior(), example.sample(), example.model.mixture
    q, p = Independent(Normal(posterior.loc, posterior.scale), 1), gaussians(example)
    everything, latent_free = log_likelihood(example, z)
    return Pieces(
        log_weight=example.model.graph.log_joint().flatten()[mixture.component_cell] + mixture.component_log_share,
        log_density=p.log_prob(z.unsqueeze(1)),
        expected_log_density=expectation(p, posterior.loc, posterior.scale),
        log_likelihood=everything[:, mixture.component_cell],
        latent_free=latent_free[:, mixture.component_cell],
        log_q=q.log_prob(z),
        entropy=q.entropy(),
    )


def gaussians(example: Example) -> MultivariateNormal:
    loc, scale = example.model.mixture.component_loc, example.model.mixture.component_scale
    return MultivariateNormal(loc, scale_tril=torch.diag_embed(scale) if scale.dim() == 2 else scale.tril())


def expectation(p: MultivariateNormal, q_loc: Tensor, q_scale: Tensor) -> Tensor:
    """E_q log p_k = log p_k(μ) - ½ tr(Σ̃_k⁻¹ diag σ²), `[batch, K]`."""
    precision = torch.inverse(p.covariance_matrix)
    return p.log_prob(q_loc.unsqueeze(1)) - 0.5 * torch.einsum("kjj,bj->bk", precision, q_scale.square())


def log_likelihood(example: Example, z: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_m log p(X_m | z, c) over modalities that are present, and the part of it on c alone; each `[batch, C]`."""
    everything = latent_free = torch.zeros(len(z), example.model.mixture.n_cells)
    for m, decoder in example.model.decoders.items():
        value = log_likelihood_of(example, m, z)
        everything = everything + value
        latent_free = latent_free if decoder.depends_on_latent else latent_free + value
    return everything, latent_free


def log_likelihood_of(example: Example, m: str, z: Tensor) -> Tensor:
    """log p(X_m | z, c), one cell after the other, `[batch, C]` (`[batch, 1]` for decoders that know no cell)."""
    decoder, x, present = example.model.decoders[m], example.batch.values[m], example.batch.present[m]
    per_cell = []
    for c in range(example.model.mixture.n_cells if decoder.depends_on_cell else 1):
        x_given = decoder(z, torch.tensor(c))
        per_cell.append(Normal(x_given.mean, x_given.scale).log_prob(x).flatten(1).sum(-1))
    log_prob = torch.stack(per_cell, dim=-1)
    return log_prob if present is None else log_prob * present.unsqueeze(-1)


def from_tensors(objective: ObjectiveName, example: Example) -> ELBOTerms:
    """The closed form of the package, which knows nothing of Pyro."""
    model, posterior, sample = example.model, example.posterior(), example.sample()
    parts = components(model)
    likelihoods = {m: responsibilities.log_likelihood(model, m, sample, example.batch) for m in model.decoders}
    if objective == "meanfield":
        free = [likelihoods[m] for m, decoder in model.decoders.items() if not decoder.depends_on_latent]
        latent_free = free[0] if free else None
        return closed_form.meanfield(posterior.loc, posterior.scale, parts, likelihoods, latent_free)
    form = closed_form.collapsed if objective == "collapsed" else closed_form.paper
    return form(sample, posterior.loc, posterior.scale, parts, likelihoods)


def kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p ‖ q) over the last dimension."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)
