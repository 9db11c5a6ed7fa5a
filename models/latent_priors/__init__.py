"""Priors on Z without cells."""

from models.latent_priors.base import LatentPrior
from models.latent_priors.linear_scm import LinearSCM
from models.latent_priors.standard import StandardNormal

__all__ = ["LatentPrior", "LinearSCM", "StandardNormal"]
