r"""Quantiles of predictive mixtures.

Of Gaussians they are solved for: `F(y) = Σ_k w_k Φ((y - μ_k) / σ_k) = p`, by Newton steps inside a bracket that halves.
Of all other distributions they are those of draws. Both are taken on the scale of the model and brought to the unit of
the data, since every transform increases.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inference.prediction.mixtures import Part
from inference.prediction.moments import normal_parameters
from models.standardisation import Standardisation

__all__ = ["mixture_quantiles", "normal_mixture_quantile"]

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
