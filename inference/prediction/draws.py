r"""Draws of Z given the modalities that samples have, with all that the model says at them.

The same standard normal numbers serve all samples, so that what is said of one sample does not depend on the others.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from inference.data.tensors import log_jacobian
from inference.objectives.given_latent import given_latent
from inference.objectives.responsibilities import log_responsibilities
from inference.training.fitted_run import FittedRun
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.mixture import GaussianMixture

__all__ = ["Drawn", "Noise", "draw", "draw_cell", "responsibilities"]


class Noise(NamedTuple):
    """Numbers that draws are made of: `normal` `[D, J]`, and two columns of `uniform` `[D, 2]`.

    The first chooses the Gaussian of q(Z | X), or of p(Z), where there are several; the second chooses the cell.
    """

    normal: Tensor
    uniform: Tensor

    @classmethod
    def make(cls, draws: int, model: CausalPIMA) -> Noise:
        """From torch's global generator of the CPU."""
        like = model.mixture.component_loc
        return cls(torch.randn(draws, model.mixture.latent_dim).to(like), torch.rand(draws, 2).to(like))


class Drawn(NamedTuple):
    """Draws for a batch.

    Attributes:
        loc: Mean of Z, `[B, J]`.
        scale: Standard deviation of Z, `[B, J]`.
        latent: Z, `[D, B, J]`; the block of an absent modality is drawn from p(Z_m | N).
        cell_probability: p(N | Z, X), `[D, B, C]`, Z being the blocks of the modalities that are present.
        given_all: The same given all of Z.
        log_evidence: `log 1/D Σ_d p(X, z_d) / q(z_d | X)`, `[B]`, in the units of the data; means nothing for
            samples without any modality.
    """

    loc: Tensor
    scale: Tensor
    latent: Tensor
    cell_probability: Tensor
    given_all: Tensor
    log_evidence: Tensor


def draw(fitted: FittedRun, batch: Batch, noise: Noise) -> Drawn:
    """Draw Z from q(Z | X), and from p(Z) for samples without any modality.

    p(N | Z, X) has the likelihoods to the power of their weights and with one variance per modality, as training has;
    the evidence has no weights, and the variances that are reported.

    Args:
        fitted: The run.
        batch: Samples, with a mask of presence for every modality.
        noise: What the draws are made of.
    """
    model, q = fitted.model, fitted.guide.encode(batch)
    mixture = model.mixture
    loc, scale, latent = q.loc, q.scale, q.draw(noise.normal.unsqueeze(1), noise.uniform[:, :1])
    empty = ~torch.stack([batch.has(name) for name in batch.present]).any(0)
    if bool(empty.any()) and isinstance(mixture, GaussianMixture):
        loc, scale, latent = _from_prior(model.log_weight(batch), mixture, noise, empty, loc, scale, latent)
    flat, repeated = latent.flatten(0, 1), batch.repeated(len(latent))
    given, present = given_latent(model, flat, repeated), mixture.present(batch)
    probability = given.cell_logits.softmax(dim=1).unflatten(0, (len(latent), -1))
    log_joint = given.log_joint().unflatten(0, (len(latent), -1))
    jacobian = _sum([log_jacobian(fitted.modalities[name].standardisation, name, batch) for name in model.decoders])
    log_weight = log_joint - q.log_density(latent, present).double() + jacobian.double()
    log_evidence = torch.logsumexp(log_weight, dim=0) - math.log(len(latent))
    if isinstance(mixture, GaussianMixture) or present is None:
        return Drawn(loc, scale, latent, probability, probability, log_evidence)
    loc, scale = mixture.complete_moments(probability.mean(0), loc, scale, present)
    complete = mixture.complete(latent, draw_cell(probability, noise), noise.normal.unsqueeze(1), present)
    absent = mixture.log_density(complete, ~present).double()
    return Drawn(loc, scale, complete, probability, (probability.log() + absent).softmax(-1), log_evidence)


def draw_cell(probability: Tensor, noise: Noise) -> Tensor:
    """One cell per draw, `[D, B]`, from p(N | Z, X) `[D, B, C]`; those that absent blocks of Z were drawn with."""
    below = probability.cumsum(-1) < noise.uniform[:, 1, None, None]
    return below.sum(-1).clamp(max=probability.shape[-1] - 1)


def responsibilities(fitted: FittedRun, batch: Batch, drawn: Drawn) -> Tensor:
    """q(N | X) `[B, C]` as the run reports it: r* for `meanfield`, else the mean of p(N | Z, X) over the draws."""
    if fitted.config.objective != "meanfield":
        return drawn.cell_probability.mean(0)
    posterior = fitted.guide.encode(batch)
    log_r = log_responsibilities("meanfield", fitted.model, posterior, posterior.loc, batch)
    r = fitted.model.mixture.sum_to_cells(log_r.exp().double())
    return r / r.sum(-1, keepdim=True)


def _from_prior(
    log_weight: Tensor,
    mixture: GaussianMixture,
    noise: Noise,
    rows: Tensor,
    loc: Tensor,
    scale: Tensor,
    latent: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """In these rows, moments and draws of p(Z), the weights of its components being `[K]` or, of each row, `[B, K]`."""
    weight = log_weight.softmax(-1).expand(len(rows), -1).contiguous()
    uniform = noise.uniform[:, 0].expand(len(rows), -1).contiguous()
    component = torch.searchsorted(weight.cumsum(-1), uniform).clamp(max=weight.shape[-1] - 1).T
    mean = weight @ mixture.component_loc
    variances = mixture.covariance().diagonal(dim1=-2, dim2=-1)
    spread = (mixture.component_loc - mean.unsqueeze(1)).square()
    variance = weight @ variances + torch.einsum("bk,bkj->bj", weight, spread)
    chosen, normal = mixture.component_scale[component], noise.normal.unsqueeze(1)
    diagonal = mixture.component_scale.dim() == 2
    step = chosen * normal if diagonal else (chosen @ normal.unsqueeze(-1)).squeeze(-1)
    drawn = mixture.component_loc[component] + step
    where = rows.unsqueeze(-1)
    return torch.where(where, mean, loc), torch.where(where, variance.sqrt(), scale), torch.where(where, drawn, latent)


def _sum(terms: list[Tensor]) -> Tensor:
    return functools.reduce(torch.add, terms)
