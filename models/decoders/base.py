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
            Batch shape: `*b` for decoders on Z alone, the broadcast of `*b` and the shape of `cell` otherwise. For
            modalities that lack single elements an `ElementDistribution`.
        """

    def observe(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Take note of a training batch; decoders with an analytic variance use it.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the measured elements of the batch.
            n_elements: Their number.
        """

    def report(self, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Called once after training with the same sums over all training samples, for what is reported from then on.

        Args:
            log_likelihood: Expected log p(X_m | Z, N), summed over the measured elements of the training samples.
            n_elements: Their number.
        """

    @property
    def reports_elements(self) -> bool:
        """Whether what is reported has a variance per element, which `report_elements` is to be told."""
        return False

    def report_elements(self, squared_error: Tensor, n_elements: Tensor) -> None:
        """Called after `report`, with sums over all training samples per element, if `reports_elements`.

        Args:
            squared_error: Expected squared distance of X_m from the mean, summed over the samples that have the
                element, `[*event]`.
            n_elements: Their number, `[*event]`.
        """

    def reported(self, distribution: TorchDistribution) -> TorchDistribution:
        """What `forward` returned as intervals, draws and log-likelihoods have it; the objective has it as it is."""
        return distribution

    def relabel(self, permutation: Tensor) -> None:
        """Give the cells other numbers: what belonged to cell c now belongs to cell `permutation[c]`, `[C]`.

        Raises:
            ValueError: The decoder depends on the cell, and does not say how.
        """
        if self.depends_on_cell:
            raise ValueError(
                f"{type(self).__name__}: expected a method relabel(permutation) of a decoder that depends on the cell, "
                "got none; define it, so that cells can be named"
            )

    def update_cells(self, mean: Tensor, weight: Tensor) -> None:
        """Closed-form or direct update of what belongs to each cell, after the clusters were read out.

        Decoders on N alone use it, for gradients alone find the nearest optimum only.

        Args:
            mean: Mean of the measured values under q(N|X) per cell, on the scale of the model, `[C, *event]`; zero
                where the weight is.
            weight: Sum of q(N|X) over the samples that have the element, `[C, *event]`.
        """
