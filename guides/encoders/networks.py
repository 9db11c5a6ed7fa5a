"""The networks behind encoders: multilayer perceptron, 2-D and 1-D convolutions.

The paper puts batch normalisation after each convolution; here it is group normalisation with one group, which treats
every sample alone: nothing changes between training and evaluation, or in a last batch of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from guides.encoders.base import Encoder
from guides.encoders.inputs import ElementFeatures, EncoderInput

__all__ = ["convolutional_encoder", "curve_encoder", "mlp_encoder"]


def mlp_encoder(
    event_shape: Sequence[int],
    hidden: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """Flatten, then linear layers with ReLU between them (paper, appendix B.1).

    Args:
        event_shape: Shape of one sample.
        hidden: Widths of the hidden layers, from X to Z.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more input per element.
        features: How an element is shown to the network; default: as it is.
    """
    inputs = EncoderInput(features, masked)
    widths = [math.prod(event_shape) * inputs.n_channels, *hidden]
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    return Encoder(nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[-1], 2 * latent_dim)), inputs)


def convolutional_encoder(
    event_shape: Sequence[int],
    channels: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """3x3 convolutions with ELU and normalisation for images `[height, width, channel]` (paper, appendix B.2).

    Args:
        event_shape: `(height, width, channel)`, height and width larger than twice the number of layers.
        channels: Channels of each layer, for example `(32, 64)`.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more channel for each of the image's.
        features: How an element is shown to the network; default: as it is.

    Raises:
        ValueError: No layer, or the event is no image or too small for the layers.
    """
    _check_size("image", event_shape, 3, len(channels))
    inputs = EncoderInput(features, masked)
    height, width, n_channels = event_shape
    shrunk = (height - 2 * len(channels)) * (width - 2 * len(channels))
    layers = _convolutions(nn.Conv2d, [n_channels * inputs.n_channels, *channels])
    dense = nn.Linear(channels[-1] * shrunk, 2 * latent_dim)
    return Encoder(nn.Sequential(_ImageChannelsFirst(), *layers, nn.Flatten(), dense), inputs)


def curve_encoder(
    event_shape: Sequence[int],
    channels: Sequence[int],
    latent_dim: int,
    masked: bool = False,
    features: ElementFeatures | None = None,
) -> Encoder:
    """1-D convolutions of width 3 with ELU and normalisation for curves `[position]` (paper, appendix B.2).

    Args:
        event_shape: `(length,)`.
        channels: Channels of each layer, for example `(8, 16)`.
        latent_dim: Dimension of Z.
        masked: Whether the network sees which elements were measured, as one more channel.
        features: How an element is shown to the network; default: as it is.

    Raises:
        ValueError: No layer, or the event is no curve or too short for the layers.
    """
    _check_size("curve", event_shape, 1, len(channels))
    inputs = EncoderInput(features, masked)
    layers = _convolutions(nn.Conv1d, [inputs.n_channels, *channels])
    dense = nn.Linear(channels[-1] * (event_shape[0] - 2 * len(channels)), 2 * latent_dim)
    return Encoder(nn.Sequential(_ChannelsFirst(), *layers, nn.Flatten(), dense), inputs)


def _check_size(kind: str, event_shape: Sequence[int], n_dims: int, n_layers: int) -> None:
    sides = event_shape[: max(n_dims - 1, 1)]
    if n_layers < 1:
        raise ValueError(f"{kind} encoder: expected channels of at least one convolution, got none")
    if len(event_shape) != n_dims or min(sides) <= 2 * n_layers:
        raise ValueError(
            f"{kind} encoder: expected {n_dims} dimensions and sides larger than {2 * n_layers} "
            f"for {n_layers} convolutions, got shape {tuple(event_shape)}"
        )


def _convolutions(layer: type[nn.Conv1d] | type[nn.Conv2d], channels: Sequence[int]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for before, after in pairwise(channels):
        layers += [layer(before, after, 3), nn.ELU(), nn.GroupNorm(1, after)]
    return layers


class _ImageChannelsFirst(nn.Module):
    """`[batch, height, width, channel, F]` -> `[batch, channel * F, height, width]`."""

    def forward(self, image: Float[Tensor, "batch height width channel numbers"]) -> Tensor:
        return image.flatten(-2).movedim(-1, 1)


class _ChannelsFirst(nn.Module):
    """`[batch, position, F]` -> `[batch, F, position]`."""

    def forward(self, curve: Float[Tensor, "batch position numbers"]) -> Tensor:
        return curve.movedim(-1, 1)
