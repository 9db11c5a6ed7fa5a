"""Gaussian decoder: a network for the mean, on Z alone or with one head per cell, and a variance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor, nn

from models.decoders.base import Decoder
from models.decoders.variance import DecoderVariance
from models.distributions import IsotropicNormal, LinearNormal

__all__ = ["GaussianDecoder"]


class GaussianDecoder(Decoder):
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
        super().__init__()
        self.body, self.head, self.variance = body, head, variance
        self.event_shape = torch.Size(event_shape)
        self.n_cells = n_cells
        self.depends_on_cell = n_cells is not None
        self.depends_on_latent = True

    def forward(self, latent: Tensor, cell: Tensor) -> TorchDistribution:
        """Distribution of the modality; see `Decoder.forward`."""
        features, scale = self.body(latent), self.variance.scale()
        if self.n_cells is None and isinstance(self.head, nn.Linear):
            return LinearNormal(
                features, self.head.weight, self.head.bias, scale, self.event_shape, validate_args=False
            )
        mean = self.head(features)
        if self.n_cells is not None:
            mean = select_head(mean.unflatten(-1, (self.n_cells, -1)), cell)
        mean = mean.unflatten(-1, self.event_shape)
        return IsotropicNormal(mean, scale, len(self.event_shape), validate_args=False)

    @torch.no_grad()
    def observe(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Update an analytic variance from the squared error behind a log-likelihood; see `Decoder.observe`."""
        self.variance.observe(self.variance.squared_error(log_likelihood, n_elements), n_elements)

    @torch.no_grad()
    def report(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Switch to the variance of the training samples without the floor, if there are any; see `Decoder.report`."""
        if n_elements > 0:
            self.variance.report(self.variance.squared_error(log_likelihood, n_elements) / n_elements)

    @property
    def reports_elements(self) -> bool:
        """See `Decoder.reports_elements`."""
        return self.variance.element is not None

    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Set the reported variance of every element; see `DecoderVariance.report_elements`."""
        self.variance.report_elements(squared_error, n_elements)

    def reported(self, distribution: TorchDistribution) -> TorchDistribution:
        """With the reported variance of every element, where there is one; see `Decoder.reported`."""
        return self.variance.of_elements(distribution)


def select_head(heads: Tensor, cell: Tensor) -> Tensor:
    """The head of each cell: `heads` `[*b, C, D]`, `cell` broadcastable with `*b`; result `[*broadcast, D]`.

    Cells that do not vary along the batch (enumeration: `[C, 1, ..., 1]`) are a view, not a gather.
    """
    batch_dims = heads.dim() - 2
    varies = any(size != 1 for size in cell.shape[max(cell.dim() - batch_dims, 0) :])
    if not varies:
        outer = cell.reshape(cell.shape[: max(cell.dim() - batch_dims, 0)])
        return heads.movedim(-2, 0)[outer]
    shape = torch.broadcast_shapes(heads.shape[:-2], cell.shape)
    index = cell.expand(shape)[..., None, None].expand(*shape, 1, heads.shape[-1])
    return heads.expand(*shape, *heads.shape[-2:]).gather(-2, index).squeeze(-2)
