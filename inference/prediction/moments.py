r"""Mean and standard deviation of a mixture by the law of total variance, in the unit of the data.

The moments of a component are exact: for a Gaussian y ~ N(μ, σ²) on the scale of the model, with u = loc + scale y,
m = E u and v = Var u,

* `identity`: x = u: mean m, variance v;
* `log`: x = exp u: mean exp(m + v/2), variance (exp v - 1) exp(2 m + v);
* `asinh`: x = k sinh u: mean k sinh(m) exp(v/2), variance k² (exp v - 1) (exp(v) cosh(2 m) + 1) / 2.

Other distributions have `identity`, but for Student's t, which has no mean under the other transforms: NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import Normal

from inference.prediction.mixtures import Part
from models.distributions import IsotropicNormal, LinearNormal
from models.element_normal import ElementNormal
from models.elementwise import Elementwise
from models.standardisation import Standardisation

__all__ = ["category_probabilities", "mixture_moments", "normal_parameters"]


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
    return mean, (spread / weight).clamp(min=0).sqrt()


def _part_moments(part: Part, standardisation: Standardisation) -> tuple[Tensor, Tensor, Tensor]:
    """Sum of the weights, mean, and weighted sum of squares about it, `[B, *event]`."""
    means, variances = _component_moments(part.distribution, standardisation)
    weight = part.weight.double().reshape(*part.weight.shape, *[1] * (means.dim() - 2))
    total = weight.sum(0)
    mean = torch.where(total > 0, (weight * means).sum(0) / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
    return total, mean, (weight * (variances + (means - mean).square())).sum(0)


def _component_moments(distribution: TorchDistribution, standardisation: Standardisation) -> tuple[Tensor, Tensor]:
    """Mean and variance of every element, `[K, B, *event]`, in the unit of the data."""
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
