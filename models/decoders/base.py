"""The interface of every decoder, neural or physical."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor, nn

__all__ = ["Decoder"]


class Decoder(nn.Module, ABC):
    """p(X_m | Z, N) of one modality.

    Attributes:
        event_shape: Shape of one sample of the modality.
        depends_on_cell: Whether the distribution changes with N.
        depends_on_latent: Whether the distribution changes with Z.
    """

    event_shape: torch.Size
    depends_on_cell: bool
    depends_on_latent: bool

    @abstractmethod
    def forward(self, latent: Tensor, cell: Tensor) -> TorchDistribution:
        """Distribution of the modality.

        Args:
            latent: Z, `[*b, J]`.
            cell: Index of the cell, integer; its shape broadcasts with `*b` (`[C, 1]` under enumeration).

        Returns:
            Batch shape: `*b` for decoders on Z alone, the broadcast of `*b` and the shape of `cell` otherwise.
        """

    def observe(self, log_likelihood: Tensor, n_present: Tensor) -> None:
        """Take note of a training batch; decoders with an analytic variance use it.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the samples of the batch that have the modality.
            n_present: Their number.
        """

    def report(self, log_likelihood: Tensor, n_present: Tensor) -> None:
        """Called once after training with the same sums over all training samples, for what is reported from then on.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the training samples that have the modality.
            n_present: Their number.
        """
