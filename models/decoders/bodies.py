"""The networks that decoders of every likelihood share: multilayer perceptron and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

__all__ = ["NETWORKS", "Network", "convolutional_network", "mlp_network"]


class Network(NamedTuple):
    """The two halves of a decoder's network.

    Attributes:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the outputs of all heads, `[*b, heads * D * P]`: P outputs for each of the D elements.
    """

    body: nn.Module
    head: nn.Module


def mlp_network(
    latent_dim: int, event_shape: Sequence[int], hidden: Sequence[int], n_heads: int = 1, n_outputs: int = 1
) -> Network:
    """Multilayer perceptron with ReLU between linear layers (paper, appendix B.1).

    Args:
        latent_dim: Dimension of Z.
        event_shape: Shape of one sample, any number of dimensions.
        hidden: Widths of the hidden layers, from Z to X.
        n_heads: Number of heads.
        n_outputs: Outputs per element, P.
    """
    widths = [latent_dim, *hidden]
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.ReLU())]
    head = nn.Linear(widths[-1], math.prod(event_shape) * n_heads * n_outputs)
    return Network(nn.Sequential(*layers), head)


def convolutional_network(
    latent_dim: int, event_shape: Sequence[int], channels: Sequence[int], n_heads: int = 1, n_outputs: int = 1
) -> Network:
    """Transposed convolutions for images `[height, width, channel]` (paper, appendix B.2; docs/errata.md item 17).

    Args:
        latent_dim: Dimension of Z.
        event_shape: `(height, width, channel)`.
        channels: Channels of the first block and of the two upsampling layers, for example `(32, 64, 32)`.
        n_heads: Number of heads, each a group of output channels.
        n_outputs: Outputs per element, P.

    Raises:
        ValueError: The event is no image, or `channels` does not have three entries.
    """
    if len(event_shape) != 3 or len(channels) != 3:
        raise ValueError(
            f"convolutional decoder: expected (height, width, channel) and 3 channel numbers, "
            f"got {tuple(event_shape)} and {tuple(channels)}"
        )
    height, width, n_channels = event_shape
    body = _ImageNetwork(latent_dim, (height, width, n_channels * n_outputs), channels, n_heads)
    return Network(body, nn.Identity())


class _ImageNetwork(nn.Module):
    """Z -> quarter-size feature map -> two upsampling layers -> image, one group of channels per head."""

    def __init__(self, latent_dim: int, event_shape: Sequence[int], channels: Sequence[int], n_heads: int) -> None:
        super().__init__()
        self.height, self.width, self.n_channels = event_shape
        self.n_heads = n_heads
        self.start = (channels[0], math.ceil(self.height / 4), math.ceil(self.width / 4))
        self.dense = nn.Linear(latent_dim, math.prod(self.start))
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(channels[0], channels[1], 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(channels[1], channels[2], 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(channels[2], self.n_channels * n_heads, 3, stride=1, padding=1),
        )

    def forward(self, latent: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch pixels"]:
        flat = latent.reshape(-1, latent.shape[-1])
        maps = self.layers(self.dense(flat).unflatten(-1, self.start))[..., : self.height, : self.width]
        heads = maps.unflatten(1, (self.n_heads, self.n_channels)).movedim(2, -1)
        return heads.reshape(*latent.shape[:-1], -1)


NETWORKS: Mapping[str, Callable[..., Network]] = {"mlp": mlp_network, "convolutional": convolutional_network}
"""By the name that `modality.NAME.decoder.kind` has. A new one is a file and a line here (docs/components.md)."""
