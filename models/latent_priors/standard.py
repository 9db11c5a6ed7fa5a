"""The standard normal on Z: the prior of a variational autoencoder."""

from __future__ import annotations

import torch
from torch import Tensor

from models.distributions import ComponentNormal
from models.latent_priors.base import LatentPrior

__all__ = ["StandardNormal"]


class StandardNormal(LatentPrior):
    """p(Z) = N(0, I) (Kingma and Welling 2014); with `kl_weight` the β-VAE (Higgins et al. 2017).

    Args:
        latent_dim: Dimension of Z, J.
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.register_buffer("loc", torch.zeros(latent_dim), persistent=False)
        self.register_buffer("scale", torch.ones(latent_dim), persistent=False)

    def distribution(self) -> ComponentNormal:
        """N(0, I)."""
        return ComponentNormal(self.loc, self.scale, validate_args=False)
