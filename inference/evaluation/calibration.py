r"""Whether the probability of the most probable cell is how often it is right.

$$\mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \overline{\text{right}}_b - \overline{\text{confidence}}_b \right|$$

over bins of the confidence $\max_c q(c \mid x)$ (Guo et al. 2017). Clusters are matched to true cells first, one to
one, so that most samples agree.

**One factor** seldom has as many levels as there are clusters. Where it has no more, every cluster is read as its most
frequent level, and the confidence is $\max_l \sum_{c \to l} q(c \mid x)$: clusters that tell the factor and more are no
worse for that. Where it has more, every level is read as the cluster that most of its other samples are in (without the
sample itself: a level of one sample proves nothing), and the confidence is that of the most probable cluster: clusters
that join levels are no worse for that either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.evaluation.node_accuracy import contingency

__all__ = ["Calibration", "FactorReading", "calibration", "expected_calibration_error", "matched", "read_factor"]

_N_BINS = 15
_N_DRAWS = 200
_FEWEST = 10


@dataclass(frozen=True)
class Calibration:
    """Confidence against truth.

    Attributes:
        ece: Expected calibration error in 15 bins of equal width.
        ece_equal_mass: The same in up to 15 bins of equally many samples, at least 10 each; ties share a bin.
        ece_if_calibrated: What `ece` would be on average if q(N|X) were right: samples are finite. No fit does better
            but by luck.
        ece_95_if_calibrated: What `ece` would exceed in one of twenty cases if q(N|X) were right.
        confidence: Mean confidence per bin of equal mass.
        accuracy: Share of right samples per bin of equal mass.
        count: Samples per bin of equal mass.
    """

    ece: float
    ece_equal_mass: float
    ece_if_calibrated: float
    ece_95_if_calibrated: float
    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


def calibration(responsibilities: np.ndarray, true_cells: np.ndarray, generator: np.random.Generator) -> Calibration:
    """Compare q(N|X) with the true cells.

    Args:
        responsibilities: `[n, C]`.
        true_cells: Codes `[n]`, none negative.
        generator: Source of the outcomes behind `ece_if_calibrated`.
    """
    right = matched(responsibilities.argmax(1), true_cells) == true_cells
    return _calibration(responsibilities.max(1), right, generator)


def _calibration(confidence: np.ndarray, right: np.ndarray, generator: np.random.Generator) -> Calibration:
    confidence = np.minimum(confidence.astype(np.float64), 1.0)
    equal_width = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    equal_mass = _equal_mass(confidence)
    drawn = generator.random((_N_DRAWS, len(confidence))) < confidence
    of_right = [expected_calibration_error(confidence, draw, equal_width) for draw in drawn]
    means = [np.bincount(equal_mass, values) for values in (confidence, right)]
    count = np.bincount(equal_mass)
    kept = count > 0
    return Calibration(
        ece=expected_calibration_error(confidence, right, equal_width),
        ece_equal_mass=expected_calibration_error(confidence, right, equal_mass),
        ece_if_calibrated=float(np.mean(of_right)),
        ece_95_if_calibrated=float(np.quantile(of_right, 0.95)),
        confidence=means[0][kept] / count[kept],
        accuracy=means[1][kept] / count[kept],
        count=count[kept],
    )


@dataclass(frozen=True)
class FactorReading:
    """Clusters read as the levels of one factor, or levels as clusters where there are more of them.

    Attributes:
        accuracy: Share of samples that agree.
        guess: What the most frequent level (or cluster) alone would reach.
        calibration: Confidence against agreement; None where no sample can be judged.
    """

    accuracy: float
    guess: float
    calibration: Calibration | None


def read_factor(responsibilities: np.ndarray, codes: np.ndarray, generator: np.random.Generator) -> FactorReading:
    """Compare q(N|X) with one factor.

    Args:
        responsibilities: `[n, C]`.
        codes: Levels `[n]`, none negative.
        generator: Source of the outcomes behind `ece_if_calibrated`.
    """
    cells = np.unique(responsibilities.argmax(1), return_inverse=True)[1].reshape(-1)
    levels = np.unique(codes, return_inverse=True)[1].reshape(-1)
    table = contingency(cells, levels)
    if table.shape[1] <= table.shape[0]:
        confidence, right = _as_levels(responsibilities, codes)
        counts = table.sum(0)
    else:
        confidence, right = _as_clusters(responsibilities.max(1), table, cells, levels)
        counts = table.sum(1)
    made = _calibration(confidence, right, generator) if len(right) else None
    accuracy = float(right.mean()) if len(right) else float("nan")
    return FactorReading(accuracy, float(counts.max() / counts.sum()), made)


def _as_levels(responsibilities: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and agreement of samples whose cluster, of others too, is read as its most frequent level."""
    n_cells, cells = responsibilities.shape[1], responsibilities.argmax(1)
    table = np.zeros((n_cells, int(codes.max()) + 1))
    np.add.at(table, (cells, codes), 1)
    # A cluster without samples says no level: its mass stays a level of its own, which is never right.
    stands_for = np.where(table.any(1), table.argmax(1), table.shape[1])
    mass = responsibilities @ np.eye(table.shape[1] + 1)[stands_for]
    known = table[cells].sum(1) > 1
    return mass.max(1)[known], (mass.argmax(1) == codes)[known]


def _as_clusters(
    confidence: np.ndarray, table: np.ndarray, cells: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same of samples whose level is read as the cluster of its other samples, as far as it has others."""
    others = table[:, levels].T - np.eye(len(table), dtype=int)[cells]
    known = others.any(1)
    return confidence[known], (others.argmax(1) == cells)[known]


def expected_calibration_error(confidence: np.ndarray, right: np.ndarray, bins: np.ndarray) -> float:
    """Σ_b |Σ_{n in b} (right_n - confidence_n)| / n.

    Args:
        confidence: Probability that the guess is right, `[n]`.
        right: Whether it is, `[n]`.
        bins: Number of the bin of each sample, `[n]`.
    """
    return float(np.abs(np.bincount(bins, right - confidence)).sum() / len(confidence))


def matched(cells: np.ndarray, true_cells: np.ndarray) -> np.ndarray:
    """The true cell that each sample's cluster stands for, `[n]`; -1 where there are more clusters than true cells.

    Args:
        cells: Most probable cell, `[n]`.
        true_cells: Codes `[n]`.
    """
    table = contingency(cells, true_cells)
    stands_for = np.full(len(table), -1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    stands_for[rows] = columns
    return stands_for[cells]


def _equal_mass(confidence: np.ndarray) -> np.ndarray:
    """Bins between quantiles; equal confidences share a bin."""
    n_bins = min(_N_BINS, max(1, len(confidence) // _FEWEST))
    edges = np.quantile(confidence, np.arange(1, n_bins) / n_bins)
    return np.searchsorted(edges, confidence, side="right")
