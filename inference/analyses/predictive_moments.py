"""Mean and standard deviation of a mixture by the law of total variance, in the unit of the data.

The moments of a component are exact: for a Gaussian y ~ N(μ, σ²) on the scale of the model, with u = loc + scale y,
m = E u and v = Var u,

* `identity`: x = u: mean m, variance v;
* `log`: x = exp u: mean exp(m + v/2), variance (exp v - 1) exp(2 m + v);
* `asinh`: x = k sinh u: mean k sinh(m) exp(v/2), variance k² (exp v - 1) (exp(v) cosh(2 m) + 1) / 2.

Other distributions have `identity`, but for Student's t, which has no mean under the other transforms: NaN.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import Normal

from causalpima.inference.data.tensors import log_jacobian
from causalpima.inference.objectives.responsibilities import given_latent, log_responsibilities
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.models.batch import Batch, Standardisation
from causalpima.models.decoders.base import Decoder
from causalpima.models.distributions import ElementNormal, Elementwise, IsotropicNormal, LinearNormal
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

__all__ = [
    "Drawn",
    "Noise",
    "Part",
    "all_parts",
    "category_probabilities",
    "conditional_log_likelihood",
    "count_present",
    "draw",
    "draw_cell",
    "mixture_moments",
    "mixture_quantiles",
    "normal_mixture_quantile",
    "normal_parameters",
    "one_per_draw",
    "responsibilities",
]


# Draws of Z given the modalities that samples have, with all that the model says at them.
#
# The same standard normal numbers serve all samples, so that what is said of one sample does not depend on the others.


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


# p(X_m | x) as a finite mixture: over the draws of Z, and exactly over the cells.
#
# `p(x_m | x) = Σ_d Σ_c w_dc p(x_m | z_d, c)`, `w_dc = p(c | z_d, x) / D`. Decoders on Z alone need no cells, those on N
# alone no draws: then it is exact but for w.


class Part(NamedTuple):
    """K components of a mixture for every sample: weights `[K, B]`, and distributions of batch shape `[K, B]`."""

    weight: Tensor
    distribution: TorchDistribution


def all_parts(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None) -> Iterator[Part]:
    """The whole mixture, a part at a time.

    Args:
        model: The generative model.
        name: The modality.
        drawn: Draws for a batch.
        covariates: `[B, V]`, or None for their average.
    """
    decoder, latent = cast(Decoder, model.decoders[name]), drawn.latent
    if not decoder.depends_on_latent:
        yield _of_cells(model, name, drawn, covariates)
    elif not decoder.depends_on_cell:
        yield _of_draws(model, name, drawn, covariates, torch.zeros((), dtype=torch.long, device=latent.device))
    else:
        for cell in torch.arange(model.mixture.n_cells, device=latent.device):
            part = _of_draws(model, name, drawn, covariates, cell)
            yield Part(drawn.given_all[..., cell] / len(latent), part.distribution)


def one_per_draw(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None, noise: Noise) -> Part:
    """A mixture with one cell for every draw of Z, drawn from p(N | Z, x); the whole one for decoders on N alone.

    Args:
        model: The generative model.
        name: The modality.
        drawn: Draws for a batch.
        covariates: `[B, V]`, or None for their average.
        noise: What the draws were made of.
    """
    decoder = cast(Decoder, model.decoders[name])
    if not decoder.depends_on_latent:
        return _of_cells(model, name, drawn, covariates)
    return _of_draws(model, name, drawn, covariates, draw_cell(drawn.cell_probability, noise))


def _of_draws(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None, cell: Tensor) -> Part:
    shape = drawn.latent.shape[:2]
    weight = drawn.cell_probability.new_full(shape, 1 / shape[0])
    return Part(weight, model.decode(name, drawn.latent, cell, covariates))


def _of_cells(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None) -> Part:
    cells = torch.arange(model.mixture.n_cells, device=drawn.loc.device).unsqueeze(1)
    return Part(drawn.cell_probability.mean(0).T, model.decode(name, drawn.loc, cells, covariates))


def mixture_moments(parts: Iterable[Part], standardisation: Standardisation) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every element, `[B, *event]`, in double precision.

    `Var x = Σ_k w_k (v_k + (m_k - m)²)`, merged part by part (Chan et al. 1979): no difference of large numbers.

    Args:
        parts: The mixture; the weights of all parts add up to one.
        standardisation: Between the unit of the data and the scale of the model.
    """
    weight, mean, spread = torch.zeros(1), torch.zeros(1), torch.zeros(1)
    for index, part in enumerate(parts):
        new = _part_moments(part, standardisation)
        if index == 0:
            weight, mean, spread = new
            continue
        total = weight + new[0]
        share = torch.where(total > 0, new[0] / total, 0.0)
        step = new[1] - mean
        spread = spread + new[2] + step.square() * weight * share
        weight, mean = total, mean + step * share
    return standardisation.moved_back(mean), (spread / weight).clamp(min=0).sqrt()


def _part_moments(part: Part, standardisation: Standardisation) -> tuple[Tensor, Tensor, Tensor]:
    """Sum of the weights, mean less the offset, and weighted sum of squares about it, `[B, *event]`."""
    means, variances = _component_moments(part.distribution, standardisation)
    weight = part.weight.double().reshape(*part.weight.shape, *[1] * (means.dim() - 2))
    total = weight.sum(0)
    mean = torch.where(total > 0, (weight * means).sum(0) / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
    return total, mean, (weight * (variances + (means - mean).square())).sum(0)


def _component_moments(distribution: TorchDistribution, standardisation: Standardisation) -> tuple[Tensor, Tensor]:
    """Mean less the offset, and variance, of every element, `[K, B, *event]`, in the unit of the data."""
    found = normal_parameters(distribution)
    if found is None:
        mean, variance = distribution.mean.double(), distribution.variance.double()
        if standardisation.transform != "identity":
            mean, variance = torch.full_like(mean, torch.nan), torch.full_like(variance, torch.nan)
        return mean * standardisation.scale + standardisation.loc, variance * standardisation.scale**2
    m = found[0].double() * standardisation.scale + standardisation.loc
    v = (found[1].double() * standardisation.scale).square().expand_as(m)
    if standardisation.transform == "log":
        return (m + v / 2).exp(), v.expm1() * (2 * m + v).exp()
    if standardisation.transform == "asinh":
        k = standardisation.knee
        return k * m.sinh() * (v / 2).exp(), k**2 * v.expm1() * (v.exp() * (2 * m).cosh() + 1) / 2
    return m, v


def normal_parameters(distribution: TorchDistribution) -> tuple[Tensor, Tensor] | None:
    """Mean `[*b, *event]` and standard deviation, which broadcasts, of independent Gaussians; None for others."""
    if isinstance(distribution, IsotropicNormal | LinearNormal):
        n_dims = len(distribution.event_shape)
        return distribution.mean, distribution.scale.reshape(distribution.scale.shape + (1,) * n_dims)
    if isinstance(distribution, ElementNormal):
        leading = (1,) * len(distribution.batch_shape)
        return distribution.mean, distribution.scale.reshape(leading + distribution.scale.shape)
    if isinstance(distribution, Elementwise) and isinstance(distribution.base, Normal):
        return distribution.base.loc, distribution.base.scale
    return None


def category_probabilities(parts: Iterable[Part]) -> Tensor:
    """Probabilities of the categories, `[B, *event, K]`, of a mixture of categorical distributions."""
    terms = []
    for part in parts:
        probabilities = part.distribution.mean.double()
        weight = part.weight.double().reshape(*part.weight.shape, *[1] * (probabilities.dim() - 2))
        terms.append((weight * probabilities).sum(0))
    return torch.stack(terms).sum(0)


# Log-likelihoods of samples, by importance weighting.
#
# `log p(x) ≈ log 1/D Σ_d p(x, z_d) / q(z_d | x)`, z_d from q(Z | x): a lower bound in expectation, tighter with more
# draws (Burda et al. 2016). N is summed out exactly. In the units of the data, without the weights of the modalities.


def count_present(batch: Batch) -> Tensor:
    """Number of modalities of every sample, `[B]`."""
    return torch.stack([batch.has(name) for name in batch.present]).sum(0)


def conditional_log_likelihood(
    fitted: FittedRun, batch: Batch, name: str, log_evidence: Tensor, noise: Noise
) -> Tensor:
    """`log p(x_m | x_others) = log p(x) - log p(x_others)`, `[B]`.

    log p(x_m) where the sample has no other modality; NaN where it lacks m.

    Args:
        fitted: The run.
        batch: Samples.
        name: The modality m.
        log_evidence: log p(x) of the samples, `[B]`.
        noise: What the draws are made of.
    """
    present = batch.has(name)
    rows = torch.nonzero(present & (count_present(batch) > 1)).squeeze(-1)
    value = torch.where(present, log_evidence, torch.nan)
    if not len(rows):
        return value
    others = draw(fitted, batch.at(rows).without(name), noise).log_evidence
    return value.index_add(0, rows, -others)


# Quantiles of predictive mixtures.
#
# Of Gaussians they are solved for: `F(y) = Σ_k w_k Φ((y - μ_k) / σ_k) = p`, by Newton steps inside a bracket that
# halves.
# Of all other distributions they are those of draws. Both are taken on the scale of the model and brought to the unit
# of
# the data, since every transform increases.


_MOST_STEPS = 60
_TOLERANCE = 1e-5
_DRAWS = 1000


def mixture_quantiles(part: Part, probabilities: tuple[float, ...], standardisation: Standardisation) -> list[Tensor]:
    """Quantiles of every element, `[B, *event]` each, in the unit of the data.

    Args:
        part: The mixture.
        probabilities: In (0, 1).
        standardisation: Between the unit of the data and the scale of the model.
    """
    found = normal_parameters(part.distribution)
    if found is None:
        quantiles = _quantiles_of_draws(part, probabilities)
    else:
        quantiles = [normal_mixture_quantile(p, part.weight, *found) for p in probabilities]
    return [standardisation.invert(quantile.double()) for quantile in quantiles]


def normal_mixture_quantile(p: float, weight: Tensor, loc: Tensor, scale: Tensor) -> Tensor:
    """`F^-1(p)` of mixtures of K Gaussians, to 1e-5 of the smallest standard deviation of the element.

    The quantile of a mixture lies between the smallest and the largest quantile of its components.

    Args:
        p: In (0, 1).
        weight: `[K, B]`, adding up to one over K.
        loc: `[K, B, *event]`, or what broadcasts to it.
        scale: Broadcasts with `loc`.
    """
    weight = weight.to(loc).reshape(*weight.shape, *[1] * (loc.dim() - 2))
    of_components = loc + scale * _standard_quantile(p)
    counted = weight > 0
    low = torch.where(counted, of_components, torch.inf).amin(0)
    high = torch.where(counted, of_components, -torch.inf).amax(0)
    smallest = scale.amin(0) if scale.dim() == loc.dim() else scale.min()
    tolerance, rounding = _TOLERANCE * smallest, 4 * torch.finfo(loc.dtype).eps
    value = (low + high) / 2
    for _ in range(_MOST_STEPS):
        z = (value - loc) / scale
        excess = (weight * torch.special.ndtr(z)).sum(0) - p
        density = (weight * (-0.5 * z.square()).exp() / scale).sum(0) / math.sqrt(2 * math.pi)
        low, high = torch.where(excess < 0, value, low), torch.where(excess < 0, high, value)
        newton = value - excess / density
        inside = (newton > low) & (newton < high)
        step = torch.where(inside, newton, (low + high) / 2) - value
        value = value + step
        if not bool((step.abs() > tolerance + rounding * value.abs()).any()):
            break
    return value


def _standard_quantile(p: float) -> float:
    return float(torch.special.ndtri(torch.tensor(p, dtype=torch.float64)))


def _quantiles_of_draws(part: Part, probabilities: tuple[float, ...]) -> list[Tensor]:
    """The smallest values that at least a share p of the weighted draws does not exceed."""
    times = -(-_DRAWS // len(part.weight))
    draws = part.distribution.sample((times,)).flatten(0, 1)
    weight = (part.weight / times).repeat(times, 1)
    weight = weight.reshape(*weight.shape, *[1] * (draws.dim() - 2)).expand(draws.shape)
    ordered, order = draws.sort(dim=0)
    below = weight.gather(0, order).cumsum(0)
    places = [(below < p * below[-1:] - 1e-9).sum(0, keepdim=True).clamp(max=len(draws) - 1) for p in probabilities]
    return [ordered.gather(0, place).squeeze(0) for place in places]
