"""Distributions that keep a shared scale scalar and never build what the likelihood does not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from models import gaussian
from models.gaussian import LOG_2PI
from models.squared_error import linear_squared_error, squared_error

__all__ = ["ComponentNormal", "ElementDistribution", "IsotropicNormal", "LinearNormal", "isotropic_log_density"]


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
        return log_density.expand(torch.broadcast_shapes(log_density.shape, self.batch_shape))


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
