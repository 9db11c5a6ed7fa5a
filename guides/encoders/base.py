"""A unimodal Gaussian encoder."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from guides.encoders.inputs import EncoderInput

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

    def draw(self, noise: Tensor | None = None) -> Tensor:
        """`μ + σ ε`, one draw per Gaussian.

        Args:
            noise: ε, `[*batch, latent]`; None: from torch's global generator.
        """
        return self.loc + self.scale * (torch.randn_like(self.loc) if noise is None else noise)


class Encoder(nn.Module):
    """q(Z | X_m) = N(μ_m, diag σ_m²) with log σ_m² clamped to a range that no precision overflows in.

    Args:
        network: Maps its input to `[batch, 2 J]`: means, then log-variances.
        inputs: From values and gaps to the input of the network, `[batch, *event, F]`. Default: the values alone,
            `[batch, *event]`, zero where not measured.
    """

    def __init__(self, network: nn.Module, inputs: EncoderInput | None = None) -> None:
        super().__init__()
        self.network = network
        self.inputs = inputs

    def forward(self, value: Tensor, observed: Tensor | None = None) -> GaussianParameters:
        """Encode a batch.

        Args:
            value: `[batch, *event]`.
            observed: Bool `[batch, *event]`, which elements were measured; None: all. Values elsewhere touch nothing.
        """
        loc, log_variance = self.network(self._input(value, observed)).chunk(2, dim=-1)
        return GaussianParameters(loc, log_variance.clamp(MIN_LOG_VARIANCE, MAX_LOG_VARIANCE))

    def _input(self, value: Tensor, observed: Tensor | None) -> Tensor:
        if self.inputs is not None:
            shown: Tensor = self.inputs(value, observed)
            return shown
        return value if observed is None else torch.where(observed, value, 0.0)
