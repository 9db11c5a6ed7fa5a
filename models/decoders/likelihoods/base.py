"""The interface of a likelihood: from what a network puts out to the distribution of every element."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from torch import Tensor, nn
from torch.distributions import Distribution

__all__ = ["Likelihood", "LikelihoodName"]

LikelihoodName = Literal["normal", "bernoulli", "categorical", "poisson", "negative_binomial", "student_t"]


class Likelihood(nn.Module, ABC):
    """Univariate distribution of an element, given the outputs of a network for it.

    Attributes:
        n_outputs: Outputs per element, P.
    """

    n_outputs: int = 1

    @abstractmethod
    def forward(self, outputs: Tensor) -> Distribution:
        """Distribution of every element.

        Args:
            outputs: `[*b, *event, P]`.

        Returns:
            Univariate, of batch shape `[*b, *event]`.
        """
