"""Gaussian decoders on the shared networks: multilayer perceptron and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from models.decoders.bodies import convolutional_network, mlp_network
from models.decoders.gaussian import GaussianDecoder
from models.decoders.variance import DecoderVariance

__all__ = ["convolutional_decoder", "mlp_decoder"]


def mlp_decoder(
    latent_dim: int,
    event_shape: Sequence[int],
    hidden: Sequence[int],
    variance: DecoderVariance,
    n_cells: int | None = None,
) -> GaussianDecoder:
    """Multilayer perceptron; see `bodies.mlp_network`.

    Args:
        latent_dim: Dimension of Z.
        event_shape: Shape of one sample, any number of dimensions.
        hidden: Widths of the hidden layers, from Z to X.
        variance: σ̂_m².
        n_cells: One head per cell if given.
    """
    network = mlp_network(latent_dim, event_shape, hidden, n_cells or 1)
    return GaussianDecoder(*network, event_shape, variance, n_cells)


def convolutional_decoder(
    latent_dim: int,
    event_shape: Sequence[int],
    channels: Sequence[int],
    variance: DecoderVariance,
    n_cells: int | None = None,
) -> GaussianDecoder:
    """Transposed convolutions for images `[height, width, channel]`; see `bodies.convolutional_network`.

    Args:
        latent_dim: Dimension of Z.
        event_shape: `(height, width, channel)`.
        channels: Channels of the first block and of the two upsampling layers, for example `(32, 64, 32)`.
        variance: σ̂_m².
        n_cells: One head (group of output channels) per cell if given.

    Raises:
        ValueError: The event is no image, or `channels` does not have three entries.
    """
    network = convolutional_network(latent_dim, event_shape, channels, n_cells or 1)
    return GaussianDecoder(*network, event_shape, variance, n_cells)
