"""Expected calibration error: by hand, of what is calibrated by construction, and of what is not."""

from __future__ import annotations

import numpy as np
import pytest

from inference.evaluation.calibration import calibration, expected_calibration_error, matched


def drawn(n: int, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """True cells drawn from q; what is reported is q to a power."""
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(3, 0.4), n)
    true = (q.cumsum(1) < rng.random((n, 1))).sum(1)
    reported = q**sharpness
    return reported / reported.sum(1, keepdims=True), true


def test_error_by_hand() -> None:
    confidence, right = np.array([0.9, 0.8, 0.6, 0.6]), np.array([1, 0, 1, 1])
    # bins {0, 1} and {2, 3}: |1 - 1.7| + |2 - 1.2|
    assert expected_calibration_error(confidence, right, np.array([0, 0, 1, 1])) == pytest.approx((0.7 + 0.8) / 4)


def test_clusters_are_matched_before_they_are_judged() -> None:
    true = np.array([0, 0, 1, 1, 2, 2])
    assert matched(np.array([2, 2, 0, 0, 1, 1]), true).tolist() == true.tolist()
    assert matched(np.array([0, 0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 0, 1])).tolist() == [0, 0, 1, 1, -1, -1]
    r, labels = drawn(2000)
    moved = calibration(r[:, [2, 0, 1]], labels, np.random.default_rng(0))
    assert moved.ece == pytest.approx(calibration(r, labels, np.random.default_rng(0)).ece)


def test_true_probabilities_are_calibrated_and_sharper_ones_are_not() -> None:
    honest = calibration(*drawn(20000), np.random.default_rng(1))
    assert honest.ece < 2 * honest.ece_if_calibrated
    assert honest.ece_equal_mass < 2 * honest.ece_if_calibrated
    boastful = calibration(*drawn(20000, sharpness=3.0), np.random.default_rng(1))
    assert boastful.ece > 10 * boastful.ece_if_calibrated
    assert (boastful.accuracy[:-1] < boastful.confidence[:-1]).all()


def test_certainty_is_judged_by_its_errors() -> None:
    true = np.arange(100) % 4
    certain = np.eye(4)[np.where(np.arange(100) < 10, (true + 1) % 4, true)]
    found = calibration(certain, true, np.random.default_rng(0))
    assert found.ece == found.ece_equal_mass == pytest.approx(0.1)
    assert found.ece_if_calibrated == 0
    assert found.count.tolist() == [100]
    assert found.accuracy == pytest.approx([0.9])
