"""Gaussians with a standard deviation per element that all samples share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyro.distributions.util import sum_rightmost
from torch import Tensor, where
from torch.distributions import Normal

from models.elementwise import Elementwise
from models.gaussian import LOG_2PI

__all__ = ["ElementNormal"]


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
