"""Any univariate distribution for every element of an event, of which some can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pyro.distributions.util import sum_rightmost
from torch import Tensor
from torch.distributions import Categorical, Distribution, constraints

from models.distributions import ElementDistribution

__all__ = ["Elementwise"]


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
