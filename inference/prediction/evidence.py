r"""Log-likelihoods of samples, by importance weighting.

`log p(x) ≈ log 1/D Σ_d p(x, z_d) / q(z_d | x)`, z_d from q(Z | x): a lower bound in expectation, tighter with more
draws (Burda et al. 2016). N is summed out exactly. In the units of the data, without the weights of the modalities.
"""

from __future__ import annotations

import torch
from torch import Tensor

from inference.prediction.draws import Noise, draw, without
from inference.training.fitted_run import FittedRun
from models.batch import Batch

__all__ = ["conditional_log_likelihood", "count_present"]


def count_present(batch: Batch) -> Tensor:
    """Number of modalities of every sample, `[B]`."""
    return torch.stack([mask for mask in batch.present.values() if mask is not None]).sum(0)


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
    present = batch.present[name]
    assert present is not None  # samples of a prediction have masks
    rows = torch.nonzero(present & (count_present(batch) > 1)).squeeze(-1)
    value = torch.where(present, log_evidence, torch.nan)
    if not len(rows):
        return value
    others = draw(fitted, without(_rows(batch, rows), name), noise).log_evidence
    return value.index_add(0, rows, -others)


def _rows(batch: Batch, rows: Tensor) -> Batch:
    return Batch(
        {name: value[rows] for name, value in batch.values.items()},
        {name: None if mask is None else mask[rows] for name, mask in batch.present.items()},
        torch.arange(len(rows), device=rows.device),
        len(rows),
        {name: mask[rows] for name, mask in batch.observed.items()},
        None if batch.covariates is None else batch.covariates[rows],
    )
