r"""Whether the probability of the most probable cell is how often it is right.

$$\mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \overline{\text{right}}_b - \overline{\text{confidence}}_b \right|$$

over bins of the confidence $\max_c q(c \mid x)$ (Guo et al. 2017). Clusters are matched to true cells first, one to
one, so that most samples agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.evaluation.node_accuracy import contingency

__all__ = ["Calibration", "calibration", "expected_calibration_error", "matched"]

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
        confidence: Mean confidence per bin of equal mass.
        accuracy: Share of right samples per bin of equal mass.
        count: Samples per bin of equal mass.
    """

    ece: float
    ece_equal_mass: float
    ece_if_calibrated: float
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
    confidence = np.minimum(responsibilities.max(1).astype(np.float64), 1.0)
    right = matched(responsibilities.argmax(1), true_cells) == true_cells
    equal_width = np.minimum((confidence * _N_BINS).astype(np.int64), _N_BINS - 1)
    equal_mass = _equal_mass(confidence)
    drawn = generator.random((_N_DRAWS, len(confidence))) < confidence
    means = [np.bincount(equal_mass, values) for values in (confidence, right)]
    count = np.bincount(equal_mass)
    kept = count > 0
    return Calibration(
        ece=expected_calibration_error(confidence, right, equal_width),
        ece_equal_mass=expected_calibration_error(confidence, right, equal_mass),
        ece_if_calibrated=float(np.mean([expected_calibration_error(confidence, draw, equal_width) for draw in drawn])),
        confidence=means[0][kept] / count[kept],
        accuracy=means[1][kept] / count[kept],
        count=count[kept],
    )


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
