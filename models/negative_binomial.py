"""Counts with more spread than Poisson's: the negative binomial by its mean and inverse dispersion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from pyro.distributions import TorchDistribution
from pyro.distributions.util import broadcast_shape
from torch import Tensor
from torch.distributions import constraints

__all__ = ["MeanNegativeBinomial", "log_rising_product"]

_LARGE = 20.0  # from here on four terms of Stirling's series are exact to float64


class MeanNegativeBinomial(TorchDistribution):
    r"""Counts of mean μ and variance μ + α μ²; Poisson's as α → 0.

    `log p(x) = Σ_{k<x} log(1 + k α) - log x! + x (log μ - log(1 + α μ)) - log(1 + α μ) / α` (NB2 in the terms of
    Cameron and Trivedi, Regression Analysis of Count Data, section 3.3). In this form nothing cancels for small α,
    other than with `torch.distributions.NegativeBinomial(1 / α)`.

    Args:
        log_mean: log μ.
        dispersion: α > 0, broadcasts with `log_mean`.
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.nonnegative_integer

    def __init__(
        self,
        log_mean: Tensor,
        dispersion: Tensor,
        batch_shape: Sequence[int] | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.log_mean, self.dispersion = log_mean, dispersion
        shape = torch.Size(batch_shape or broadcast_shape(log_mean.shape, dispersion.shape))
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """μ."""
        return self.log_mean.exp().expand(self.batch_shape)

    @property
    def variance(self) -> Tensor:
        """μ + α μ²."""
        return self.mean + self.dispersion * self.mean.square()

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> MeanNegativeBinomial:
        """The same distribution with a larger batch shape; the tensors are not expanded."""
        return MeanNegativeBinomial(self.log_mean, self.dispersion, batch_shape, validate_args=False)

    @torch.no_grad()
    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Poisson draws of rates drawn from a gamma distribution of mean μ and shape 1 / α."""
        shape = self._extended_shape(torch.Size(sample_shape))
        multiplier = torch._standard_gamma((1 / self.dispersion).expand(shape)) * self.dispersion
        return torch.poisson(self.log_mean.exp() * multiplier)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of counts."""
        log_spread = (self.dispersion * self.log_mean.exp()).log1p()
        combinations = log_rising_product(value, self.dispersion) - torch.lgamma(value + 1)
        return combinations + value * (self.log_mean - log_spread) - log_spread / self.dispersion


def log_rising_product(count: Float[Tensor, "..."], step: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """`Σ_{k<x} log(1 + k α)` = log Γ(x + 1/α) - log Γ(1/α) + x log α for counts x and steps α > 0.

    From gamma functions for α above 1/20; below, where their difference would cancel, from Stirling's series.
    """
    inverse = 1 / step
    small, large = inverse.clamp(max=_LARGE), inverse.clamp(min=_LARGE)
    by_gamma = torch.lgamma(count + small) - torch.lgamma(small) - count * small.log()
    by_series = (count + large - 0.5) * (count / large).log1p() - count + _stirling(count + large) - _stirling(large)
    return torch.where(inverse < _LARGE, by_gamma, by_series)


def _stirling(z: Tensor) -> Tensor:
    """log Γ(z) - ((z - ½) log z - z + ½ log 2π)."""
    square = z.square()
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / z
