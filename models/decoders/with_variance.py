"""What decoders with a Gaussian likelihood share: how their variance learns, and how it is reported."""

from __future__ import annotations

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from models.decoders.base import Decoder
from models.decoders.variance import DecoderVariance

__all__ = ["VarianceDecoder"]


class VarianceDecoder(Decoder):
    """A decoder whose distribution is a Gaussian of scale `variance.scale()`.

    Attributes:
        variance: σ̂_m².
    """

    variance: DecoderVariance

    @torch.no_grad()
    def observe(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Update an analytic variance from the squared error behind a log-likelihood; see `Decoder.observe`."""
        self.variance.observe(self.variance.squared_error(log_likelihood, n_elements), n_elements)

    @torch.no_grad()
    def report(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Switch to the variance of the training samples without the floor, if there are any; see `Decoder.report`."""
        if n_elements > 0:
            self.variance.report(self.variance.squared_error(log_likelihood, n_elements) / n_elements)

    @property
    def reports_elements(self) -> bool:
        """See `Decoder.reports_elements`."""
        return self.variance.element is not None

    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Set the reported variance of every element; see `DecoderVariance.report_elements`."""
        self.variance.report_elements(squared_error, n_elements)

    def reported(self, distribution: TorchDistribution) -> TorchDistribution:
        """With the reported variance of every element, where there is one; see `Decoder.reported`."""
        return self.variance.of_elements(distribution)
