"""The decoder of every elementwise likelihood: a network for its parameters, on Z alone or with one head per cell."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.decoders.base import Decoder
from models.decoders.bodies import convolutional_network, mlp_network
from models.decoders.gaussian import select_head
from models.decoders.likelihoods.base import Likelihood
from models.elementwise import Elementwise

__all__ = ["LikelihoodDecoder", "convolutional_likelihood_decoder", "mlp_likelihood_decoder"]


class LikelihoodDecoder(Decoder):
    """p(X_m | Z, N) = ∏_d p(x_d | outputs of the network for element d).

    Args:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the outputs of all heads, `[*b, heads * D * P]`; D is the number of elements of an event,
            P the number of outputs that the likelihood needs for each.
        event_shape: Shape of one sample.
        likelihood: From outputs to distributions.
        n_cells: One head per cell if given, else one head on Z alone.
    """

    def __init__(
        self,
        body: nn.Module,
        head: nn.Module,
        event_shape: Sequence[int],
        likelihood: Likelihood,
        n_cells: int | None = None,
    ) -> None:
        super().__init__()
        self.body, self.head, self.likelihood = body, head, likelihood
        self.event_shape = torch.Size(event_shape)
        self.n_cells = n_cells
        self.depends_on_cell = n_cells is not None
        self.depends_on_latent = True

    def forward(self, latent: Tensor, cell: Tensor) -> Elementwise:
        """Distribution of the modality; see `Decoder.forward`."""
        outputs = self.head(self.body(latent))
        if self.n_cells is not None:
            outputs = select_head(outputs.unflatten(-1, (self.n_cells, -1)), cell)
        outputs = outputs.unflatten(-1, (*self.event_shape, self.likelihood.n_outputs))
        return Elementwise(self.likelihood(outputs), len(self.event_shape), validate_args=False)


def mlp_likelihood_decoder(
    latent_dim: int,
    event_shape: Sequence[int],
    hidden: Sequence[int],
    likelihood: Likelihood,
    n_cells: int | None = None,
) -> LikelihoodDecoder:
    """Multilayer perceptron; see `bodies.mlp_network`.

    Args:
        latent_dim: Dimension of Z.
        event_shape: Shape of one sample, any number of dimensions.
        hidden: Widths of the hidden layers, from Z to X.
        likelihood: From outputs to distributions.
        n_cells: One head per cell if given.
    """
    network = mlp_network(latent_dim, event_shape, hidden, n_cells or 1, likelihood.n_outputs)
    return LikelihoodDecoder(*network, event_shape, likelihood, n_cells)


def convolutional_likelihood_decoder(
    latent_dim: int,
    event_shape: Sequence[int],
    channels: Sequence[int],
    likelihood: Likelihood,
    n_cells: int | None = None,
) -> LikelihoodDecoder:
    """Transposed convolutions for images `[height, width, channel]`; see `bodies.convolutional_network`.

    Args:
        latent_dim: Dimension of Z.
        event_shape: `(height, width, channel)`.
        channels: Channels of the first block and of the two upsampling layers, for example `(32, 64, 32)`.
        likelihood: From outputs to distributions.
        n_cells: One head (group of output channels) per cell if given.

    Raises:
        ValueError: The event is no image, or `channels` does not have three entries.
    """
    network = convolutional_network(latent_dim, event_shape, channels, n_cells or 1, likelihood.n_outputs)
    return LikelihoodDecoder(*network, event_shape, likelihood, n_cells)
