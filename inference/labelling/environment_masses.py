"""How many samples of each environment every cluster has, corrected for the confusion of overlapping clusters."""

from __future__ import annotations

import numpy as np

from inference.graphs.mixture_likelihood import log_likelihood_ratio

__all__ = ["environment_counts"]

_MOST_STEPS = 500
_TOLERANCE = 1e-8


def environment_counts(responsibilities: np.ndarray, environment: np.ndarray, n_environments: int) -> np.ndarray:
    r"""Maximum-likelihood mass of every cluster in every environment, components held, times its samples.

    Responsibilities come from one mixture for all samples, with shares `p(c)`, so that `l_nc = R_nc / p(c)` is
    proportional to the likelihood of sample n in cluster c. In environment e the shares maximise
    `Σ_{n in e} log Σ_c π_ec l_nc`, by expectation maximisation from `π_e = p`. Counting hard assignments, or R itself,
    draws what the environments differ in toward their mean, and makes up edges where clusters overlap.

    Args:
        responsibilities: R `[n, C]`, rows sum to 1.
        environment: Code of each sample, `[n]`, from 0 to E - 1.
        n_environments: E.

    Returns:
        `n_e π_ec`, `[E, C]`.
    """
    share = responsibilities.mean(0, dtype=np.float64)
    weights = np.exp(log_likelihood_ratio(responsibilities))
    found = np.zeros((n_environments, len(share)))
    for code in range(n_environments):
        rows = weights[environment == code]
        found[code] = len(rows) * _shares(rows, share) if len(rows) else 0.0
    return found


def _shares(likelihood: np.ndarray, start: np.ndarray) -> np.ndarray:
    """argmax over π of the mean of log Σ_c π_c l_nc."""
    share = start / start.sum()
    for _ in range(_MOST_STEPS):
        joint = likelihood * share
        new = (joint / joint.sum(1, keepdims=True)).mean(0)
        moved = float(np.abs(new - share).max())
        share = new
        if moved < _TOLERANCE:
            break
    return share
