r"""Means over seeds, and differences from the baseline that are paired by seed.

For a metric x and seeds s: $d_s = x_s^{\text{cell}} - x_s^{\text{baseline}}$, over the seeds that both have. Data,
split and seed of both fits are the same, so that what varies between seeds drops out of the difference.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

__all__ = [
    "CONFIDENCE",
    "FEW_SEEDS",
    "Difference",
    "Spread",
    "bootstrap_interval",
    "differences_of",
    "mean_interval",
    "paired_difference",
    "spread",
    "verdict",
]

CONFIDENCE = 0.95
FEW_SEEDS = 6
"""With fewer a bootstrap interval is narrower than the spread of what it is made of: there is none."""

_RESAMPLES = 9999
_ROUNDING = 1e-12
# A bound is a quantile of 9999 resampled means: were these normal, its standard error would be 0.7 % of the width.
_UNRESOLVED = 0.01


class Spread(NamedTuple):
    """Mean and standard deviation (n - 1 below it) of `n` numbers; None where too few."""

    n: int
    mean: float | None
    sd: float | None


class Difference(NamedTuple):
    """Mean of `n` paired differences with the bounds of its bootstrap interval; None where too few."""

    n: int
    mean: float | None
    lower: float | None
    upper: float | None


def spread(values: Mapping[int, float]) -> Spread:
    """Mean and standard deviation over seeds.

    >>> spread({0: 1.0, 1: 3.0})
    Spread(n=2, mean=2.0, sd=1.4142135623730951)
    """
    numbers = np.array(list(values.values()))
    mean = float(numbers.mean()) if len(numbers) else None
    return Spread(len(numbers), mean, float(numbers.std(ddof=1)) if len(numbers) > 1 else None)


def differences_of(values: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Differences from the baseline by seed, over the seeds of both; what only rounding leaves is zero.

    Args:
        values: By seed.
        baseline: The same of the baseline.

    >>> differences_of({0: 0.1 + 0.2, 1: 0.5}, {0: 0.3, 2: 1.0})
    {0: 0.0}
    """
    return {seed: _without_rounding(value, baseline[seed]) for seed, value in values.items() if seed in baseline}


def _without_rounding(value: float, usual: float) -> float:
    """The same clusters in another order have scores that differ in their last places."""
    return 0.0 if math.isclose(value, usual, rel_tol=_ROUNDING, abs_tol=_ROUNDING) else value - usual


def paired_difference(values: Mapping[int, float], baseline: Mapping[int, float]) -> Difference:
    """Mean of the differences from the baseline, over the seeds of both, with its interval.

    A bound nearer to zero than 1 % of the width of the interval, about as near as resampling can tell, is zero.

    Args:
        values: By seed.
        baseline: The same of the baseline.
    """
    differences = np.array(list(differences_of(values, baseline).values()))
    mean = float(differences.mean()) if len(differences) else None
    return Difference(len(differences), mean, *_resolved(*mean_interval(differences)))


def _resolved(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    if lower is None or upper is None:
        return lower, upper
    nearest = _UNRESOLVED * (upper - lower)
    return (0.0 if abs(lower) < nearest else lower), (0.0 if abs(upper) < nearest else upper)


def mean_interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """`bootstrap_interval` of six numbers or more; fewer have none."""
    return (None, None) if len(values) < FEW_SEEDS else bootstrap_interval(values)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of the mean: bias-corrected and accelerated (Efron 1987), percentiles where that is undefined.

    Args:
        values: Numbers `[n]`, two or more.
    """
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    accelerated = _interval(values, "BCa")
    return accelerated if all(map(math.isfinite, accelerated)) else _interval(values, "percentile")


def verdict(found: Difference, better: int) -> str:
    """What an interval says in words.

    Args:
        found: The difference.
        better: 1: more is better, -1: less is better, 0: neither.
    """
    if found.lower is None or found.upper is None or found.n < FEW_SEEDS:
        return "too few seeds to tell"
    if found.lower <= 0 <= found.upper:
        return "no difference is shown"
    return {0: "different", (1 if found.lower > 0 else -1): "better"}.get(better, "worse")


def _interval(values: np.ndarray, method: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate resampling distribution: then the bounds are NaN
        found = bootstrap(
            (values,),
            np.mean,
            n_resamples=_RESAMPLES,
            confidence_level=CONFIDENCE,
            method=method,
            random_state=np.random.default_rng(0),
        ).confidence_interval
    return float(found.low), float(found.high)
