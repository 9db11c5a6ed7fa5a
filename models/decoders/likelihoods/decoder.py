"""The decoder of every elementwise likelihood: a network for its parameters, on Z alone or with one head per cell."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from models.decoders.likelihoods.base import Likelihood
from models.decoders.network_decoder import NetworkDecoder
from models.elementwise import Elementwise

__all__ = ["LikelihoodDecoder"]


class LikelihoodDecoder(NetworkDecoder):
    """p(X_m | Z, N) = ∏_d p(x_d | outputs of the network for element d).

    Body and head come from `bodies.mlp_network` or `bodies.convolutional_network`, with `n_cells or 1` heads and
    `likelihood.n_outputs` outputs.

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
        super().__init__(body, head, event_shape, n_cells)
        self.likelihood = likelihood

    def forward(self, latent: Tensor, cell: Tensor) -> Elementwise:
        """Distribution of the modality; see `Decoder.forward`."""
        outputs = self.outputs(self.body(latent), cell)
        outputs = outputs.unflatten(-1, (*self.event_shape, self.likelihood.n_outputs))
        return Elementwise(self.likelihood(outputs), len(self.event_shape), validate_args=False)
