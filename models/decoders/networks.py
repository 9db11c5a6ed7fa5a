"""Gaussian decoders on the shared networks: multilayer perceptron and transposed convolutions."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from pyro.distributions import TorchDistribution
from torch import Tensor, nn

from causalpima.models.decoders.base import Decoder, DecoderVariance, VarianceDecoder
from causalpima.models.distributions import IsotropicNormal, LinearNormal
from causalpima.models.user_code import UserKind, call_user_code, named_object, names_user_code

__all__ = [
    "NETWORKS",
    "GaussianDecoder",
    "Network",
    "NetworkDecoder",
    "convolutional_decoder",
    "convolutional_network",
    "is_network",
    "load_network",
    "mlp_decoder",
    "mlp_network",
    "renumber_heads",
    "select_head",
]


# The networks that decoders of every likelihood share: multilayer perceptron and transposed convolutions.


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


# Heads per cell, renumbered.


_OUTPUT_AXIS = {nn.Linear: 0, nn.ConvTranspose2d: 1}


@torch.no_grad()
def renumber_heads(network: nn.Module, n_heads: int, permutation: Tensor) -> None:
    """Let head c of the last layer with weights become head `permutation[c]`.

    Args:
        network: Its last layer is linear or a transposed convolution, whose outputs are one group per head.
        n_heads: Number of heads, C.
        permutation: New number of each head, `[C]`.

    Raises:
        ValueError: Another last layer.
    """
    layer = [module for module in network.modules() if next(module.parameters(recurse=False), None) is not None][-1]
    axis = _OUTPUT_AXIS.get(type(layer))
    if axis is None:
        raise ValueError(
            f"decoder: expected a last layer that is one of {', '.join(kind.__name__ for kind in _OUTPUT_AXIS)}, got "
            f"{type(layer).__name__}; its heads cannot be renumbered"
        )
    old = torch.argsort(permutation)
    for name, along in (("weight", axis), ("bias", 0)):
        value = getattr(layer, name)
        if value is not None:
            value.copy_(value.unflatten(along, (n_heads, -1)).index_select(along, old).flatten(along, along + 1))


# What decoders share that are a network: one head on Z alone, or one per cell.


class NetworkDecoder(Decoder):
    """A decoder that is a network.

    Args:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the outputs of all heads, `[*b, heads * D * P]`; D is the number of elements of an event,
            P the number of outputs for each.
        event_shape: Shape of one sample.
        n_cells: One head per cell if given, else one head on Z alone.
    """

    def __init__(self, body: nn.Module, head: nn.Module, event_shape: Sequence[int], n_cells: int | None) -> None:
        super().__init__()
        self.body, self.head = body, head
        self.event_shape = torch.Size(event_shape)
        self.n_cells = n_cells
        self.depends_on_cell = n_cells is not None
        self.depends_on_latent = True

    def outputs(self, features: Tensor, cell: Tensor) -> Tensor:
        """Outputs of the head, that of the cell where there is one for each, `[*broadcast, D * P]`.

        Args:
            features: `[*b, F]`.
            cell: Index of the cell, broadcastable with `*b`.
        """
        outputs: Tensor = self.head(features)
        return outputs if self.n_cells is None else select_head(outputs.unflatten(-1, (self.n_cells, -1)), cell)

    def relabel(self, permutation: Tensor) -> None:
        """Give the heads the new numbers of their cells; see `Decoder.relabel`."""
        if self.n_cells is not None:
            renumber_heads(nn.Sequential(self.body, self.head), self.n_cells, permutation)


def select_head(heads: Tensor, cell: Tensor) -> Tensor:
    """The head of each cell: `heads` `[*b, C, D]`, `cell` broadcastable with `*b`; result `[*broadcast, D]`.

    Cells that do not vary along the batch (enumeration: `[C, 1, ..., 1]`) are a view, not a gather.
    """
    batch_dims = heads.dim() - 2
    varies = any(size != 1 for size in cell.shape[max(cell.dim() - batch_dims, 0) :])
    if not varies:
        outer = cell.reshape(cell.shape[: max(cell.dim() - batch_dims, 0)])
        return heads.movedim(-2, 0)[outer]
    shape = np.broadcast_shapes(heads.shape[:-2], cell.shape)
    index = cell.expand(shape)[..., None, None].expand(*shape, 1, heads.shape[-1])
    return heads.expand(*shape, *heads.shape[-2:]).gather(-2, index).squeeze(-2)


# Gaussian decoder: a network for the mean, on Z alone or with one head per cell, and a variance.


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


# A decoder's network from its name, or from `module:function` in a file of the user's own.


_NETWORK = "causalpima.models.decoders.networks.Network"

_KIND = UserKind("a function", inspect.isfunction, f"a function that makes a {_NETWORK}", "functions")

_FACTS = ("latent_dim", "shape", "sizes", "n_heads", "n_outputs")


def is_network(name: str) -> bool:
    """Whether a kind of decoder is a network: of the table, or a function. A class is a law, and what is not there too.

    Raises nothing: what a name lacks is said where it is loaded.
    """
    if not names_user_code(name):
        return name in NETWORKS
    try:
        named_object("", name, _KIND)
    except ValueError:
        return False
    return True


def load_network(name: str) -> Callable[..., Network]:
    """What makes a network, called as `mlp_network` is.

    Args:
        name: A key of `NETWORKS`, or `module:function`.

    Raises:
        ValueError: It is not there; when called, that it makes no network.
    """
    if name in NETWORKS:
        return NETWORKS[name]
    subject = f"decoder {name}"
    make = named_object(subject, name, _KIND)

    def checked(*arguments: object) -> Network:
        network = call_user_code(subject, make, *arguments, names=_FACTS)
        if not isinstance(network, Network):
            raise ValueError(
                f"{subject}: expected it to make a {_NETWORK}(body, head), got {type(network).__name__}; "
                "docs/components.md shows one"
            )
        return network

    return checked
