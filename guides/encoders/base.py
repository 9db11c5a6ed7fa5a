"""A unimodal Gaussian encoder."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from guides.encoders.inputs import EncoderInput
from models import gaussian
from models.distributions import ComponentNormal

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

    def draw(self, noise: Tensor | None = None, uniform: Tensor | None = None) -> Tensor:
        """`μ + σ ε`, `[*draws, *batch, latent]`.

        Args:
            noise: ε, broadcasts to `[*draws, *batch, latent]`; None: one draw, from torch's global generator.
            uniform: What a mixture chooses its component by; here there is nothing to choose.
        """
        return self.loc + self.scale * (torch.randn_like(self.loc) if noise is None else noise)

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log q(value), `[*draws, *batch]`, of the dimensions that are `present` (`gaussian.log_density`)."""
        return gaussian.log_density(value, self.loc, self.scale, present)

    def entropy_at(self, sample: Tensor, present: Tensor | None = None) -> Tensor:
        """The entropy, `[*batch]`: exact, whatever was drawn; a mixture has none in closed form."""
        if present is not None:
            return gaussian.entropy(self.scale, present)
        return 0.5 * (self.log_variance.sum(-1) + self.loc.shape[-1] * (gaussian.LOG_2PI + 1))

    def parts(self) -> tuple[tuple[Tensor, GaussianParameters], ...]:
        """The Gaussians that this is a mixture of, each with its weight `[*batch]`: itself alone."""
        return ((torch.ones_like(self.loc[..., 0]), self),)

    def distribution(self) -> ComponentNormal:
        """As a Pyro program draws from it."""
        return ComponentNormal(self.loc, self.scale, validate_args=False)


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
