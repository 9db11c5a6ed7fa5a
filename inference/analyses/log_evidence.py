"""log p(x) of samples by importance sampling."""

from __future__ import annotations

import numpy as np
import torch

from causalpima.inference.analyses.predictive_moments import Noise, draw
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import seed_generators, surroundings

__all__ = [
    "log_evidence",
]


_ROWS = 8192


def log_evidence(fitted: FittedRun, data: MultimodalData, draws: int, seed: int) -> np.ndarray:
    r"""`log 1/D Σ_d p(X, z_d) / q(z_d | X)` of samples, in nats and the units of the data, `[n]`.

    Args:
        fitted: Model and guide.
        data: The samples.
        draws: D.
        seed: Of the draws.

    Raises:
        ValueError: The samples do not fit the run.
    """
    samples = fit_to_run(data, fitted)
    with surroundings(fitted.device), torch.no_grad():
        seed_generators(seed, fitted.device)
        noise = Noise.make(draws, fitted.model)
        batches = samples.batches(max(1, _ROWS // draws), fitted.model.mixture.component_loc)
        parts = [draw(fitted, batch, noise).log_evidence.cpu() for _, batch in batches]
    evidence: np.ndarray = torch.cat(parts).double().numpy()
    return evidence
