"""Likelihoods of counts: Poisson, and with more spread the negative binomial."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pyro.distributions import Poisson
from torch import Tensor, nn

from models.decoders.likelihoods.base import Likelihood
from models.decoders.likelihoods.limits import clamp_with_way_back, inverse_softplus
from models.negative_binomial import MeanNegativeBinomial

__all__ = ["MAX_LOG_RATE", "MIN_DISPERSION", "MIN_LOG_RATE", "NegativeBinomialLikelihood", "PoissonLikelihood"]

MIN_LOG_RATE, MAX_LOG_RATE = -20.0, 25.0
MIN_DISPERSION = 1e-6


class PoissonLikelihood(Likelihood):
    """`log p(x) = x log λ - λ - log x!` for counts x, with log λ = output + `log_rate`.

    Args:
        log_rate: Where the outputs start: the log of the mean count of the training samples saves the network the way
            there. A number, or one per element `[*event]`.
    """

    log_rate: Tensor

    def __init__(self, log_rate: float | Tensor = 0.0) -> None:
        super().__init__()
        self.register_buffer("log_rate", torch.as_tensor(log_rate, dtype=torch.get_default_dtype()))

    def forward(self, outputs: Tensor) -> Poisson:
        """See `Likelihood.forward`."""
        return Poisson(_bounded(outputs.squeeze(-1) + self.log_rate).exp(), validate_args=False)


class NegativeBinomialLikelihood(Likelihood):
    """Counts of mean μ and variance μ + α μ², with log μ = output + `log_rate`; see `MeanNegativeBinomial`.

    The inverse dispersion α is learned; as it goes to zero the likelihood becomes Poisson's.

    Args:
        log_rate: As for `PoissonLikelihood`.
        dispersion: α at the start.
        dispersion_shape: `()` for one α per modality, the event shape for one per element.

    Raises:
        ValueError: `dispersion` not above its lower bound.
    """

    log_rate: Tensor

    def __init__(
        self, log_rate: float | Tensor = 0.0, dispersion: float = 0.1, dispersion_shape: Sequence[int] = ()
    ) -> None:
        super().__init__()
        if dispersion <= MIN_DISPERSION:
            raise ValueError(f"dispersion: expected a start > {MIN_DISPERSION}, got {dispersion}; or choose poisson")
        self.register_buffer("log_rate", torch.as_tensor(log_rate, dtype=torch.get_default_dtype()))
        self.raw_dispersion = nn.Parameter(
            torch.full(tuple(dispersion_shape), inverse_softplus(dispersion - MIN_DISPERSION))
        )

    @property
    def dispersion(self) -> Tensor:
        """α, `[]` or `[*event]`."""
        return MIN_DISPERSION + nn.functional.softplus(self.raw_dispersion)

    def forward(self, outputs: Tensor) -> MeanNegativeBinomial:
        """See `Likelihood.forward`."""
        log_mean = _bounded(outputs.squeeze(-1) + self.log_rate)
        return MeanNegativeBinomial(log_mean, self.dispersion, validate_args=False)


def _bounded(log_rate: Tensor) -> Tensor:
    return clamp_with_way_back(log_rate, MIN_LOG_RATE, MAX_LOG_RATE)
