"""Gaussian decoder: a network for the mean, on Z alone or with one head per cell, and a variance."""

from __future__ import annotations

from collections.abc import Sequence

from pyro.distributions import TorchDistribution
from torch import Tensor, nn

from models.decoders.network_decoder import NetworkDecoder
from models.decoders.variance import DecoderVariance
from models.decoders.with_variance import VarianceDecoder
from models.distributions import IsotropicNormal, LinearNormal

__all__ = ["GaussianDecoder"]


class GaussianDecoder(NetworkDecoder, VarianceDecoder):
    """p(X_m | Z, N) = N(μ̂_m(Z, N), σ̂_m² I) (paper, section 2.1).

    Args:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the means of all heads, `[*b, heads * D]`; D is the number of elements of an event.
            A single `nn.Linear` head is fused into the likelihood.
        event_shape: Shape of one sample.
        variance: σ̂_m².
        n_cells: One head per cell if given, else one head on Z alone.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        event_shape: Sequence[int],
        variance: DecoderVariance,
        n_cells: int | None = None,
    ) -> None:
        super().__init__(body, head, event_shape, n_cells)
        self.variance = variance

    def forward(self, latent: Tensor, cell: Tensor) -> TorchDistribution:
        """Distribution of the modality; see `Decoder.forward`."""
        features, scale = self.body(latent), self.variance.scale()
        if self.n_cells is None and isinstance(self.head, nn.Linear):
            return LinearNormal(
                features, self.head.weight, self.head.bias, scale, self.event_shape, validate_args=False
            )
        mean = self.outputs(features, cell).unflatten(-1, self.event_shape)
        return IsotropicNormal(mean, scale, len(self.event_shape), validate_args=False)
