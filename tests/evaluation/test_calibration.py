"""Expected calibration error: by hand, of what is calibrated by construction, and of what is not."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.analyses.node_scores import calibration, expected_calibration_error, matched, read_factor


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


def blurred(n: int, n_cells: int, doubt: float, sharpness: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """True cells, and a q(N|X) that has a share `doubt` of its mass elsewhere, as often as it is wrong."""
    rng = np.random.default_rng(2)
    true = rng.integers(0, n_cells, n)
    seen = np.where(rng.random(n) < doubt, (true + rng.integers(1, n_cells, n)) % n_cells, true)
    r = np.full((n, n_cells), doubt * sharpness / (n_cells - 1))
    r[np.arange(n), seen] = 1 - doubt * sharpness
    return r, true


@pytest.mark.parametrize(("n_cells", "n_levels"), [(8, 2), (4, 4), (4, 160)])
def test_calibration_of_a_factor_with_fewer_or_more_levels_than_clusters(n_cells: int, n_levels: int) -> None:
    """A right q passes whatever their numbers, one that is too sure does not."""
    rng = np.random.default_rng(3)
    r, true = blurred(1600, n_cells, 0.2)
    codes = true % n_levels if n_levels <= n_cells else true + n_cells * rng.integers(0, n_levels // n_cells, 1600)
    found = read_factor(r, codes, np.random.default_rng(0))
    assert found.calibration is not None
    assert found.calibration.ece <= 0.04
    assert found.accuracy == pytest.approx(0.8 + 0.2 * 3 / 7 if n_cells == 8 else 0.8, abs=0.03)
    sure = read_factor(blurred(1600, n_cells, 0.2, sharpness=0.05)[0], codes, np.random.default_rng(0)).calibration
    assert sure is not None
    assert sure.ece > 0.1
    joint = calibration(r, codes, np.random.default_rng(0))
    assert (joint.ece > 0.3) == (n_levels != n_cells), "which is what one to one says of other numbers"


def test_a_level_of_one_sample_proves_nothing() -> None:
    r, _ = blurred(90, 3, 0.1)
    found = read_factor(r, np.arange(90), np.random.default_rng(0))
    assert found.calibration is None
    assert np.isnan(found.accuracy)


def test_a_guess_is_the_share_of_the_largest() -> None:
    r = np.eye(2)[np.arange(100) % 2]
    found = read_factor(r, (np.arange(100) >= 70).astype(int), np.random.default_rng(0))
    assert (found.guess, found.accuracy) == (0.7, 0.7)


def test_one_of_twenty_right_models_is_above_the_95_percent() -> None:
    honest = calibration(*drawn(400), np.random.default_rng(1))
    assert honest.ece_if_calibrated < honest.ece_95_if_calibrated < 2 * honest.ece_if_calibrated
