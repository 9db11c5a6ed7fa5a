r"""Log-likelihoods of samples, by importance weighting.

`log p(x) ≈ log 1/D Σ_d p(x, z_d) / q(z_d | x)`, z_d from q(Z | x): a lower bound in expectation, tighter with more
draws (Burda et al. 2016). N is summed out exactly. In the units of the data, without the weights of the modalities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inference.prediction.draws import Noise, draw
from inference.training.fitted_run import FittedRun
from models.batch import Batch

__all__ = ["conditional_log_likelihood", "count_present"]


def count_present(batch: Batch) -> Tensor:
    """Number of modalities of every sample, `[B]`."""
    return torch.stack([batch.has(name) for name in batch.present]).sum(0)


def conditional_log_likelihood(
    fitted: FittedRun, batch: Batch, name: str, log_evidence: Tensor, noise: Noise
) -> Tensor:
    """`log p(x_m | x_others) = log p(x) - log p(x_others)`, `[B]`.

    log p(x_m) where the sample has no other modality; NaN where it lacks m.

    Args:
        fitted: The run.
        batch: Samples.
        name: The modality m.
        log_evidence: log p(x) of the samples, `[B]`.
        noise: What the draws are made of.
    """
    present = batch.has(name)
    rows = torch.nonzero(present & (count_present(batch) > 1)).squeeze(-1)
    value = torch.where(present, log_evidence, torch.nan)
    if not len(rows):
        return value
    others = draw(fitted, batch.at(rows).without(name), noise).log_evidence
    return value.index_add(0, rows, -others)
