r"""Means of a modality for every outcome of a node, with standard errors that count groups, not samples.

With $\bar x_o$ the mean over the $n_o$ measured samples of outcome o, $u_{go}$ the sum of $x - \bar x_o$ over those of
group g, and $G_o$ the number of groups that have some,

$$\mathrm{Cov}(\bar x_o, \bar x_p) = \sum_g a_{go} a_{gp}, \qquad
a_{go} = \sqrt{\frac{G_o}{G_o - 1}} \frac{u_{go}}{n_o}$$

(Liang and Zeger 1986, with the correction for few groups). Where every sample is its own group, the standard error is
$s / \sqrt{n_o}$; groups with samples of two outcomes enter the difference of these as pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

__all__ = ["Differences", "OutcomeMeans", "Reader", "differences", "outcome_means"]

Reader = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From positions of samples to their values, float64 `[b, E]`, and which of these were measured, bool `[b, E]`."""

_ROWS_AT_ONCE = 1024
_LEVEL = 0.975


class OutcomeMeans(NamedTuple):
    """Per outcome and element, `[outcome, E]`; NaN where nothing says it.

    Attributes:
        samples: Number of measured samples.
        units: Number of groups among them.
        mean: Their mean.
        variance: Square of its standard error.
        covariance: Covariance of the mean with that of the first outcome.
        within: Σ (x - mean)² over the samples.
        is_shared: Whether some group has samples of two outcomes.
    """

    samples: np.ndarray
    units: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    covariance: np.ndarray
    within: np.ndarray
    is_shared: bool

    @property
    def explained(self) -> float:
        """Share of the variance between outcomes, over all elements together: the correlation ratio R²."""
        there = self.samples > 0
        mean, total = np.where(there, self.mean, 0.0), self.samples.sum(0)
        centre = (self.samples * mean).sum(0) / np.maximum(total, 1)
        between = (self.samples * np.square(mean - centre)).sum()
        whole = between + self.within.sum()
        return float(between / whole) if whole > 0 else 0.0


class Differences(NamedTuple):
    """Every outcome minus the first, `[outcome - 1, E]`, with 95 % intervals element by element.

    Attributes:
        value: The difference of the means.
        standard_error: Of it.
        lower: Lower end.
        upper: Upper end.
        standardised: Root mean square of the differences over the elements, in pooled standard deviations within the
            outcomes, `[outcome - 1]`.
    """

    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    standardised: np.ndarray


def outcome_means(read: Reader, codes: np.ndarray, units: np.ndarray, n_outcomes: int) -> OutcomeMeans:
    """Means and their covariances, in two passes over the samples, some at a time.

    Args:
        read: Values of samples.
        codes: Outcome of each sample, `[n]`.
        units: Group of each sample, `[n]`.
        n_outcomes: Number of outcomes.
    """
    count, mean = _means(read, codes, n_outcomes)
    n_units, square, product, within = (np.zeros_like(mean) for _ in range(4))
    for rows in _whole_units(units):
        values, measured = read(rows)
        starts = np.flatnonzero(np.r_[True, np.diff(units[rows]) != 0])
        residuals = [np.where(measured & (codes[rows] == o)[:, None], values - mean[o], 0.0) for o in range(n_outcomes)]
        sums = [np.add.reduceat(residual, starts) for residual in residuals]
        for o, (residual, total) in enumerate(zip(residuals, sums, strict=True)):
            n_units[o] += np.logical_or.reduceat(measured & (codes[rows] == o)[:, None], starts).sum(0)
            square[o] += np.square(total).sum(0)
            product[o] += (total * sums[0]).sum(0)
            within[o] += np.square(residual).sum(0)
    scale = _scale(count, n_units)
    return OutcomeMeans(
        count, n_units, mean, square * scale**2, product * scale * scale[:1], within, _is_shared(codes, units)
    )


def differences(means: OutcomeMeans) -> Differences:
    """Differences to the first outcome.

    Intervals are those of Student's t with the degrees of freedom of Welch and Satterthwaite; where groups have samples
    of both outcomes, those of the smaller number of groups.
    """
    value = means.mean[1:] - means.mean[:1]
    error = np.sqrt(np.maximum(means.variance[1:] + means.variance[:1] - 2 * means.covariance[1:], 0.0))
    half = student.ppf(_LEVEL, _degrees_of_freedom(means)) * error
    return Differences(value, error, value - half, value + half, _standardised(means, value))


def _means(read: Reader, codes: np.ndarray, n_outcomes: int) -> tuple[np.ndarray, np.ndarray]:
    count: np.ndarray | float = 0.0
    total: np.ndarray | float = 0.0
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(codes)))
        values, measured = read(rows)
        member = np.eye(n_outcomes)[codes[rows]].T
        count, total = count + member @ measured, total + member @ np.where(measured, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(count), np.asarray(total / count)


def _whole_units(units: np.ndarray) -> Iterator[np.ndarray]:
    """Positions of samples, group by group, no group cut in two."""
    order = np.argsort(units, kind="stable")
    ends = np.r_[np.flatnonzero(np.diff(units[order])) + 1, len(order)]
    start = 0
    while start < len(order):
        within_reach = ends[(ends > start) & (ends <= start + _ROWS_AT_ONCE)]
        end = int(within_reach[-1] if len(within_reach) else ends[ends > start][0])
        yield order[start:end]
        start = end


def _scale(count: np.ndarray, units: np.ndarray) -> np.ndarray:
    """√(G / (G - 1)) / n; NaN where there are fewer than two groups, which have no scatter between them."""
    enough = units > 1
    return np.where(enough, np.sqrt(units / np.where(enough, units - 1, 1.0)) / np.maximum(count, 1.0), np.nan)


def _is_shared(codes: np.ndarray, units: np.ndarray) -> bool:
    pairs = np.unique(np.stack([units, codes], axis=1), axis=0)
    return len(pairs) > len(np.unique(units))


def _degrees_of_freedom(means: OutcomeMeans) -> np.ndarray:
    first, others = means.variance[:1], means.variance[1:]
    each = means.units - 1
    if means.is_shared:
        return np.minimum(each[:1], each[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.square(first + others) / (np.square(first) / each[:1] + np.square(others) / each[1:])
    # Without scatter the interval has no width, whatever the degrees of freedom.
    return np.where(first + others > 0, found, np.minimum(each[:1], each[1:]))


def _standardised(means: OutcomeMeans, value: np.ndarray) -> np.ndarray:
    left = means.samples.sum(0) - (means.samples > 0).sum(0)
    variance = means.within.sum(0) / np.maximum(left, 1)
    known = np.isfinite(value) & (left > 0)
    spread = np.where(known, variance, 0.0).sum(1)
    squares = np.where(known, np.square(value), 0.0).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.sqrt(squares / spread))
