"""Pretraining of encoders and decoders without clusters (paper, section 3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from guides.guide import Guide
from inference.objectives.responsibilities import log_likelihood
from inference.objectives.terms import ELBOTerms
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.gaussian import LOG_2PI

__all__ = ["pretraining_terms"]


def pretraining_terms(model: CausalPIMA, guide: Guide, batch: Batch, noise: Tensor | None = None) -> ELBOTerms:
    r"""Terms of the unit-normal variational autoencoder, `E_q log p(X|z) - KL(q(z|X) ‖ N(0, I))`, per sample.

    The prior term has its closed form: `latent + latent_entropy = -½ Σ_j (μ_j² + σ_j² - 1 - log σ_j²)`; of a mixture,
    whose entropy has none, -log q(z) at the drawn z is in the place of the entropy. With decoders per cell the
    likelihood is averaged over cells, since there are none yet.

    Args:
        model: The model, with decoders on Z.
        guide: The guide.
        batch: The samples.
        noise: That of the draw of z, `[batch, J]`; None: from torch's global generator.
    """
    posterior = guide.encode(batch)
    sample = posterior.draw(noise)
    reconstruction = {name: _mean_over_cells(log_likelihood(model, name, sample, batch)) for name in model.decoders}
    latent_dim = posterior.loc.shape[-1]
    second_moment = posterior.loc.square() + posterior.log_variance.exp()
    latent = -0.5 * (second_moment.sum(-1) + latent_dim * LOG_2PI)
    zero = torch.zeros_like(latent)
    return ELBOTerms(reconstruction, zero, latent, zero, posterior.entropy_at(sample))


def _mean_over_cells(value: Tensor) -> Tensor:
    return value if value.dim() == 1 else value.mean(-1)
