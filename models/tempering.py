"""Likelihoods raised to a power: how much a modality counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

__all__ = ["Tempered", "tempered"]


class Tempered(TorchDistribution):
    """A distribution whose log-density is multiplied by a weight; draws and moments are those of the base.

    `weight * log p(x)` is not normalised: with weights other than 1 the objective is a generalised (power) posterior's,
    not an evidence lower bound.

    Args:
        base: The distribution.
        weight: > 0.
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(self, base: TorchDistribution, weight: float) -> None:
        self.base, self.weight = base, weight
        super().__init__(base.batch_shape, base.event_shape, validate_args=False)

    @property
    def support(self) -> constraints.Constraint:
        """That of the base."""
        return self.base.support

    @property
    def has_rsample(self) -> bool:
        """That of the base."""
        return bool(self.base.has_rsample)

    @property
    def mean(self) -> Tensor:
        """That of the base."""
        return self.base.mean

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Tempered:
        """The same distribution with a larger batch shape."""
        return Tempered(self.base.expand(batch_shape), self.weight)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draws of the base."""
        return self.base.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Reparametrised draws of the base."""
        return self.base.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """`weight * log p(value)`."""
        return self.weight * self.base.log_prob(value)


def tempered(distribution: TorchDistribution, weight: float) -> TorchDistribution:
    """The distribution itself where the weight is 1."""
    return distribution if weight == 1 else Tempered(distribution, weight)
