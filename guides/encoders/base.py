"""A unimodal Gaussian encoder."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

__all__ = ["MAX_LOG_VARIANCE", "MIN_LOG_VARIANCE", "Encoder", "GaussianParameters"]

MIN_LOG_VARIANCE, MAX_LOG_VARIANCE = -14.0, 10.0


class GaussianParameters(NamedTuple):
    """Mean and log-variance of a Gaussian with diagonal covariance, each `[*batch, latent]`."""

    loc: Tensor
    log_variance: Tensor

    @property
    def scale(self) -> Tensor:
        """Standard deviations."""
        return (0.5 * self.log_variance).exp()


class Encoder(nn.Module):
    """q(Z | X_m) = N(μ_m, diag σ_m²) with log σ_m² clamped to a range that no precision overflows in.

    Args:
        network: Maps `[batch, *event]` to `[batch, 2 J]`: means, then log-variances.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, value: Tensor) -> GaussianParameters:
        """Encode a batch, `[batch, *event]`."""
        loc, log_variance = self.network(value).chunk(2, dim=-1)
        return GaussianParameters(loc, log_variance.clamp(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE))
