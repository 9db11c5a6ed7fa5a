"""Distributions that keep a shared scale scalar and never build what the likelihood does not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from pyro.distributions import TorchDistribution
from pyro.distributions.util import broadcast_shape, sum_rightmost
from torch import Tensor, where
from torch.distributions import Categorical, Distribution, Normal, constraints

from causalpima.models import gaussian
from causalpima.models.gaussian import LOG_2PI, linear_squared_error, squared_error

__all__ = [
    "ComponentNormal",
    "ElementDistribution",
    "ElementNormal",
    "Elementwise",
    "IsotropicNormal",
    "LinearNormal",
    "MeanNegativeBinomial",
    "isotropic_log_density",
    "log_rising_product",
]


class ComponentNormal(TorchDistribution):
    """Gaussian over the last dimension, with diagonal (`scale` `[*b, J]`) or full (`[*b, J, J]`, Cholesky) covariance.

    Args:
        loc: Mean, `[*b, J]`.
        scale: Standard deviations `[*b, J]`, or Cholesky factors of the covariance `[*b, J, J]`.
    """

    arg_constraints: dict[str, Any] = {}
    support = constraints.independent(constraints.real, 1)
    has_rsample = True

    def __init__(
        self, loc: Tensor, scale: Tensor, batch_shape: Sequence[int] | None = None, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale = loc, scale
        super().__init__(torch.Size(batch_shape or loc.shape[:-1]), loc.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, J]`."""
        return self.loc.expand(*self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> ComponentNormal:
        """The same distribution with a larger batch shape; the tensors are not expanded."""
        return ComponentNormal(self.loc, self.scale, batch_shape, validate_args=False)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised draws."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        if self.scale.dim() == self.loc.dim():
            return self.loc + self.scale * noise
        return self.loc + (self.scale * noise.unsqueeze(-2)).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of `value` `[*b, J]`."""
        log_density = gaussian.log_density(value, self.loc, self.scale)
        if log_density.shape[log_density.dim() - len(self.batch_shape) :] == self.batch_shape:
            return log_density
        return log_density.expand(np.broadcast_shapes(log_density.shape, self.batch_shape))


class ElementDistribution(TorchDistribution):
    """A distribution over an event whose elements are independent, so that some of them can be left out."""

    arg_constraints: dict[str, Any] = {}

    def restricted(self, observed: Tensor) -> ElementDistribution:
        """The same distribution, whose log-density is that of the measured elements alone.

        Args:
            observed: Bool, broadcasts to `[*b, *event]`; values elsewhere are finite filler that touches nothing.
        """
        raise NotImplementedError


class IsotropicNormal(ElementDistribution):
    """Gaussian N(loc, scale² I) over the last `event_dim` dimensions with one scale for all of them.

    `log p = -½ ‖x - loc‖² / σ̂² - D log σ̂ - ½ D log 2π`, D being the number of elements of an event (the factor D
    is missing in the paper, docs/errata.md item 3).

    Args:
        loc: `[*b, *event]`.
        scale: Scalar, or any shape that broadcasts to `[*b]`.
        event_dim: Number of event dimensions.
        observed: Bool, which elements the log-density takes in; None: all.
    """

    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        scale: Tensor,
        event_dim: int,
        validate_args: bool | None = None,
        observed: Tensor | None = None,
    ) -> None:
        self.loc, self.scale, self.observed = loc, scale, observed
        split = loc.dim() - event_dim
        super().__init__(loc.shape[:split], loc.shape[split:], validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Real vectors of the event shape."""
        return constraints.independent(constraints.real, len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, *event]`."""
        return self.loc

    @property
    def _event_scale(self) -> Tensor:
        return self.scale.reshape(self.scale.shape + (1,) * len(self.event_shape))

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> IsotropicNormal:
        """The same distribution with a larger batch shape; the scale is not expanded."""
        loc = self.loc.expand(*batch_shape, *self.event_shape)
        return IsotropicNormal(loc, self.scale, len(self.event_shape), False, self.observed)

    def restricted(self, observed: Tensor) -> IsotropicNormal:
        """See `ElementDistribution.restricted`."""
        return IsotropicNormal(self.loc, self.scale, len(self.event_shape), False, observed)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised draws."""
        shape = self._extended_shape(torch.Size(sample_shape))
        noise = torch.randn(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + self._event_scale * noise

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of `value` `[*b, *event]`, shape `[*b]`."""
        n_dims = len(self.event_shape)
        error = squared_error(value, self.loc, n_dims, self.observed)
        if self.observed is None:
            return isotropic_log_density(error, self.scale, self.event_shape.numel())
        measured = self.observed.flatten(-n_dims) if n_dims else self.observed.unsqueeze(-1)
        return isotropic_log_density(error, self.scale, measured.sum(-1))


class LinearNormal(ElementDistribution):
    """`IsotropicNormal(hidden @ weight.T + bias)`, with the last linear layer fused into the log-density.

    The mean is only built where it is asked for; `log_prob` saves one residual and scales small matrices in the
    backward pass, never one of the size of the data.

    Args:
        hidden: Input of the last layer, `[*b, H]`.
        weight: `[D, H]`.
        bias: `[D]`.
        scale: Scalar.
        event_shape: Shape of an event, with D elements.
    """

    has_rsample = True

    def __init__(
        self,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor,
        scale: Tensor,
        event_shape: torch.Size,
        validate_args: bool | None = None,
    ) -> None:
        self.hidden, self.weight, self.bias, self.scale = hidden, weight, bias, scale
        super().__init__(hidden.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """Real vectors of the event shape."""
        return constraints.independent(constraints.real, len(self.event_shape))

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, *event]`."""
        flat = torch.nn.functional.linear(self.hidden, self.weight, self.bias)
        return flat.reshape(*self.batch_shape, *self.event_shape)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> TorchDistribution:
        """The same distribution with a larger batch shape."""
        if tuple(batch_shape) == tuple(self.batch_shape):
            return self
        return self._dense().expand(batch_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised draws."""
        return self._dense().rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of `value` `[*b, *event]`, shape `[*b]`."""
        if value.shape != self.batch_shape + self.event_shape:
            return self._dense().log_prob(value)
        flat, hidden = value.reshape(-1, self.bias.shape[0]), self.hidden.reshape(-1, self.hidden.shape[-1])
        error = linear_squared_error(hidden, self.weight, self.bias, flat).reshape(self.batch_shape)
        return isotropic_log_density(error, self.scale, self.bias.shape[0])

    def restricted(self, observed: Tensor) -> IsotropicNormal:
        """See `ElementDistribution.restricted`."""
        return self._dense().restricted(observed)

    def _dense(self) -> IsotropicNormal:
        return IsotropicNormal(self.mean, self.scale, len(self.event_shape), validate_args=False)


def isotropic_log_density(squared_error: Tensor, scale: Tensor, n_elements: int | Tensor) -> Tensor:
    """`-½ squared_error / scale² - D log scale - ½ D log 2π` for D elements."""
    return -0.5 * squared_error / scale.square() - n_elements * (scale.log() + 0.5 * LOG_2PI)


# Any univariate distribution for every element of an event, of which some can be left out.


class Elementwise(ElementDistribution):
    """Independent elements: `log p(x) = Σ_d log p_d(x_d)` over the measured elements d.

    Values that were not measured are replaced before the log-density is evaluated, so that they touch neither it nor a
    gradient, also where they are NaN or outside the support.

    Args:
        base: Univariate distribution of every element, batch shape `[*b, *event]`.
        event_dim: Number of event dimensions.
        observed: Bool, broadcasts to `[*b, *event]`: which elements the log-density takes in; None: all.
    """

    def __init__(
        self,
        base: Distribution,
        event_dim: int,
        observed: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.base, self.observed = base, observed
        split = len(base.batch_shape) - event_dim
        super().__init__(base.batch_shape[:split], base.batch_shape[split:], validate_args=validate_args)

    @property
    def support(self) -> constraints.Constraint:
        """That of the base, for every element."""
        return constraints.independent(self.base.support, len(self.event_shape))

    @property
    def has_rsample(self) -> bool:
        """That of the base."""
        return bool(self.base.has_rsample)

    @property
    def mean(self) -> Tensor:
        """Mean, `[*b, *event]`; of K categories their probabilities, `[*b, *event, K]`."""
        return self.base.probs if isinstance(self.base, Categorical) else self.base.mean

    @property
    def variance(self) -> Tensor:
        """Variance, `[*b, *event]`; of K categories those of their indicators p (1 - p), `[*b, *event, K]`."""
        if isinstance(self.base, Categorical):
            return self.base.probs * (1 - self.base.probs)
        return self.base.variance

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Elementwise:
        """The same distribution with a larger batch shape."""
        base = self.base.expand(torch.Size(batch_shape) + self.event_shape)
        return Elementwise(base, len(self.event_shape), self.observed, False)

    def restricted(self, observed: Tensor) -> Elementwise:
        """See `ElementDistribution.restricted`."""
        return Elementwise(self.base, len(self.event_shape), observed, False)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of all elements."""
        return self.base.sample(torch.Size(sample_shape)).to(_number_type(self.base))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised draws of all elements, where the base has them."""
        return self.base.rsample(torch.Size(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of the measured elements of `value` `[*b, *event]`, shape `[*b]`."""
        n_dims = len(self.event_shape)
        if self.observed is None:
            return sum_rightmost(self.base.log_prob(value), n_dims)
        log_prob = self.base.log_prob(torch.where(self.observed, value, _inside_support(self.base)))
        return sum_rightmost(torch.where(self.observed, log_prob, 0.0), n_dims)


def _number_type(base: Distribution) -> torch.dtype:
    """That of the parameters: categories are drawn as integers, and values of modalities are floats."""
    return base.probs.dtype if isinstance(base, Categorical) else base.mean.dtype


def _inside_support(base: Distribution) -> Tensor:
    """Some value that every element can take: ½, 0 or 1 if they can, else the means."""
    support: Any = base.support
    for candidate in (0.5, 0.0, 1.0):  # 0 and 1 may be where a density on the unit interval ends
        value = torch.tensor(candidate)
        if bool(support.check(value).all()):
            return value
    return base.mean.detach()


# Gaussians with a standard deviation per element that all samples share.


class ElementNormal(Elementwise):
    """`Elementwise(Normal(loc, scale))` whose scale has the shape of one event and is never expanded in the density.

    Args:
        loc: `[*b, *event]`.
        scale: `[*event]`.
        observed: Bool, broadcasts to `[*b, *event]`: which elements the log-density takes in; None: all.
    """

    def __init__(self, loc: Tensor, scale: Tensor, observed: Tensor | None = None) -> None:
        self.scale = scale
        super().__init__(Normal(loc, scale, validate_args=False), scale.dim(), observed, validate_args=False)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> ElementNormal:
        """The same distribution with a larger batch shape."""
        return ElementNormal(self.base.mean.expand(*batch_shape, *self.event_shape), self.scale, self.observed)

    def restricted(self, observed: Tensor) -> ElementNormal:
        """See `ElementDistribution.restricted`."""
        return ElementNormal(self.base.mean, self.scale, observed)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density of the measured elements of `value` `[*b, *event]`, shape `[*b]`."""
        n_dims, constant = len(self.event_shape), self.scale.log() + 0.5 * LOG_2PI
        square = ((value - self.base.mean) / self.scale).square()
        if self.observed is None:
            return -0.5 * sum_rightmost(square, n_dims) - constant.sum()
        square = where(self.observed, square, 0.0)
        return -0.5 * sum_rightmost(square, n_dims) - sum_rightmost(self.observed * constant, n_dims)


# Counts with more spread than Poisson's: the negative binomial by its mean and inverse dispersion.


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
