"""What a model says at given latents, cell by cell: p(N | Z, X), and likelihoods without the weights of training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import torch
from torch import Tensor

from inference.objectives.responsibilities import log_likelihood
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder

__all__ = ["GivenLatent", "given_latent"]


class GivenLatent(NamedTuple):
    """Log-densities at latents, one per sample of the batch, in float64.

    Attributes:
        log_prior: log p(Z = z, N = c), under p(N | e) where a sample is of such an environment, `[B, C]`.
        cell_logits: log p(N = c | Z = z, X) up to a constant, `[B, C]`: the likelihoods to the power of their weights
            and with one variance per modality, as training has them.
        log_likelihood: Per modality log p(X_m | z, c), `[B, C]`, or `[B, 1]` where N does not matter: without weights,
            with the variances that are reported, on the scale of the model; zero where absent.
    """

    log_prior: Tensor
    cell_logits: Tensor
    log_likelihood: Mapping[str, Tensor]

    def log_joint(self) -> Tensor:
        """log p(X, Z = z) = log Σ_c p(z, c) ∏_m p(X_m | z, c), `[B]`, without weights."""
        return torch.logsumexp(sum(self.log_likelihood.values(), self.log_prior), dim=1)


def given_latent(model: CausalPIMA, latent: Tensor, batch: Batch) -> GivenLatent:
    """Evaluate a model at latents.

    Args:
        model: The model.
        latent: `[B, J]`. The block of an absent modality is left out of the densities.
        batch: Samples, `B` of them.
    """
    mixture = model.mixture
    weight = model.log_weight(batch)
    prior = mixture.logsumexp_to_cells(weight + mixture.log_density(latent, mixture.present(batch))).double()
    of_cells = [name for name, decoder in model.decoders.items() if cast(Decoder, decoder).depends_on_cell]
    logits = sum((log_likelihood(model, name, latent, batch).double() for name in of_cells), prior)
    reported = {name: log_likelihood(model, name, latent, batch, reported=True) for name in model.decoders}
    return GivenLatent(prior, logits, {name: _by_cell(value) / model.weights[name] for name, value in reported.items()})


def _by_cell(value: Tensor) -> Tensor:
    return value.double() if value.dim() == 2 else value.double().unsqueeze(1)
