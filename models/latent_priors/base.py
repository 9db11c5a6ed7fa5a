"""p(Z) without cells: what stands in the place of the mixture until clusters are read out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from models.batch import Batch
from models.distributions import ComponentNormal

__all__ = ["LatentPrior"]


class LatentPrior(nn.Module, ABC):
    """A Gaussian p(Z) that has no N: of a variational autoencoder, or of a structural equation model.

    It is in force during joint training. Then clusters are read out of the embedding and the mixture takes its place
    (density estimation after the fact, Ghosh et al. 2020), so that everything that works with cells works.
    """

    @abstractmethod
    def distribution(self) -> ComponentNormal:
        """p(Z), of empty batch shape."""

    def observe(self, latent: Tensor, batch: Batch) -> None:
        """Pyro sites of what is seen of Z beside the modalities: of labels, say. None by default.

        Args:
            latent: Z, `[batch, J]`, inside of the plate over samples.
            batch: The samples.
        """

    def log_prior(self) -> Tensor:
        """Declared log-prior of its parameters, and what keeps them in their range, a scalar once for the data set."""
        return torch.zeros(())

    def end_epoch(self) -> None:
        """What changes once an epoch: multipliers of a constraint, say. Nothing by default."""
