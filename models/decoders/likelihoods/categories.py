"""Likelihoods of yes or no, and of one out of K."""

from __future__ import annotations

from pyro.distributions import Bernoulli, Categorical
from torch import Tensor

from models.decoders.likelihoods.base import Likelihood

__all__ = ["BernoulliLikelihood", "CategoricalLikelihood"]


class BernoulliLikelihood(Likelihood):
    """`log p(x) = x a - log(1 + e^a)` for x in {0, 1}; the output a is the log-odds."""

    def forward(self, outputs: Tensor) -> Bernoulli:
        """See `Likelihood.forward`."""
        return Bernoulli(logits=outputs.squeeze(-1), validate_args=False)


class CategoricalLikelihood(Likelihood):
    """`log p(x = k) = a_k - log Σ_j e^{a_j}` for the codes k = 0 to K - 1, which have no order.

    Args:
        n_categories: K, at least 2.

    Raises:
        ValueError: Fewer than two categories.
    """

    def __init__(self, n_categories: int) -> None:
        super().__init__()
        if n_categories < 2:
            raise ValueError(f"n_categories: expected at least 2, got {n_categories}; a constant needs no likelihood")
        self.n_outputs = n_categories

    def forward(self, outputs: Tensor) -> Categorical:
        """See `Likelihood.forward`."""
        return Categorical(logits=outputs, validate_args=False)
