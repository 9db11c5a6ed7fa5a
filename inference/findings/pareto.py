"""The tail of importance weights: whether an average over them can be trusted."""

from __future__ import annotations

import numpy as np

__all__ = [
    "FEWEST_DRAWS",
    "K_LIMIT",
    "psis_khat",
]


K_LIMIT = 0.7
"""Shape of the tail above which averages over the weights are not to be trusted (Vehtari et al. 2024)."""

FEWEST_DRAWS = 25
"""Of which a tail can be fitted."""

_FEWEST_IN_TAIL = 5
_PRIOR_K, _PRIOR_DRAWS, _PRIOR_B = 0.5, 10, 3


def psis_khat(log_weight: np.ndarray) -> np.ndarray:
    r"""Shape k of the generalised Pareto distribution that fits the largest importance weights.

    Below 0.7 importance sampling works; above it, R-hat and ESS could not have told, since draws from a guide are
    independent (Vehtari et al. 2024, JMLR 25(72), with draws taken as independent). Written here, since the two lines
    of ArviZ take and give it in different forms, and take seconds to import.

    Args:
        log_weight: Log of the weights, `[D, S]`, D >= 25: log p(x, z) - log q(z|x) for the guide, minus the
            log-likelihood for leaving a sample out.

    Returns:
        k per sample, `[S]`; 0 where the largest weights are all equal (there is no tail), infinite where a weight is
        not finite, or so few count that no tail can be fitted.

    Raises:
        ValueError: `log_weight` has another shape or too few draws.
    """
    if log_weight.ndim != 2 or len(log_weight) < FEWEST_DRAWS:
        raise ValueError(
            f"log_weight: expected [draw, sample] with at least {FEWEST_DRAWS} draws, got shape {log_weight.shape}; "
            "draw more from the guide"
        )
    with np.errstate(all="ignore"):  # an overflow is a tail that cannot be fitted
        found = np.array([_shape(weights) for weights in log_weight.T.astype(np.float64)])
    return np.where(np.isnan(found), np.inf, found)


def _shape(log_weight: np.ndarray) -> float:
    """k of one sample, `[D]`."""
    if not np.isfinite(log_weight).all():
        return np.inf
    n = len(log_weight)
    n_tail = int(np.ceil(min(n / 5, 3 * np.sqrt(n))))
    ordered = np.sort(log_weight) - log_weight.max()
    cutoff = ordered[-n_tail - 1]
    if cutoff == 0:
        return 0.0
    cutoff = max(cutoff, np.log(np.finfo(float).tiny))
    tail = np.exp(ordered[ordered > cutoff]) - np.exp(cutoff)
    return np.inf if len(tail) < _FEWEST_IN_TAIL else _generalised_pareto_shape(tail)


def _generalised_pareto_shape(ordered: np.ndarray) -> float:
    """Mean of k under a weakly informative prior, after Zhang and Stephens (2009) with that of Vehtari et al. (2024).

    Args:
        ordered: Values above the cutoff, increasing, `[M]`.
    """
    n = len(ordered)
    n_grid = 30 + int(np.sqrt(n))
    quartile = ordered[int(n / 4 + 0.5) - 1]
    b = 1 / ordered[-1] + (1 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (_PRIOR_B * quartile)
    k = np.log1p(-b[:, None] * ordered).mean(1)
    profile = n * (np.log(-b / k) - k - 1)
    weight = np.exp(profile - profile.max())
    best = (b * weight).sum() / weight.sum()
    k_best = np.log1p(-best * ordered).mean()
    return float((n * k_best + _PRIOR_DRAWS * _PRIOR_K) / (n + _PRIOR_DRAWS))
