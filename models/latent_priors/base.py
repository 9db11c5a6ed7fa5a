"""p(Z) without cells: what stands in the place of the mixture until clusters are read out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyro
import torch
from torch import Tensor, nn

from models.batch import Batch
from models.distributions import ComponentNormal

__all__ = ["LatentPrior"]


class LatentPrior(nn.Module, ABC):
    """A Gaussian p(Z) that has no N: of a variational autoencoder, or of a structural equation model.

    It is in force during joint training. Then clusters are read out of the embedding and the mixture takes its place
    (density estimation after the fact, Ghosh et al. 2020), so that everything that works with cells works.

    Attributes:
        in_force: Bool, a scalar, saved with the weights: whether it stands in the place of graph and mixture.
    """

    in_force: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("in_force", torch.tensor(True))

    def retire(self) -> None:
        """Let graph and mixture take its place, for good."""
        self.in_force.fill_(False)

    @abstractmethod
    def distribution(self) -> ComponentNormal:
        """p(Z), of empty batch shape."""

    def sample(self, batch: Batch, power: float = 1.0) -> Tensor:
        """The sites `Z` and those of `observe`, inside of the plate over samples; returns Z, `[batch, J]`.

        Args:
            batch: The samples.
            power: Likelihoods are raised to it (`CausalPIMA.kl_weight`).
        """
        latent: Tensor = pyro.sample("Z", self.distribution())
        self.observe(latent, batch, power)
        return latent

    def observe(self, latent: Tensor, batch: Batch, power: float) -> None:
        """Pyro sites of what is seen of Z beside the modalities: none by default, labels in `LinearSCM`.

        Args:
            latent: Z, `[batch, J]`, inside of the plate over samples.
            batch: The samples.
            power: What the likelihoods of such sites are raised to (`models.tempering.tempered`).
        """

    def log_prior(self) -> Tensor:
        """Declared log-prior of its parameters, and what keeps them in their range, a scalar once for the data set."""
        return torch.zeros(())

    def end_epoch(self) -> None:
        """What changes once an epoch: multipliers of a constraint, say. Nothing by default."""
