"""Measured factors beside nodes that are seen through a mixture.

hidden a   observed f (some samples without it)
"""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.graphs.hidden import score_dag, with_observed

EDGE = np.array([[0, 1], [0, 0]])


def likelihood_by_hand(weight: np.ndarray, codes: np.ndarray, joint: np.ndarray) -> float:
    """Sample by sample: the level that is there, or the sum over all."""
    total = 0.0
    for row, code in zip(weight, codes, strict=True):
        columns = joint if code < 0 else joint[:, [code]]
        total += np.log((row[:, None] * columns).sum())
    return total


def test_maximum_likelihood_sums_unknown_levels_out() -> None:
    generator = np.random.default_rng(0)
    weight, codes = generator.random((40, 2)), generator.integers(-1, 3, 40)
    joint = with_observed(np.log(weight), codes[:, None], (3,))
    assert joint.shape == (40, 6)
    found, n_parameters = score_dag(joint, (2, 3), EDGE, n_steps=5000, tolerance=1e-12)
    assert n_parameters == 1 + 2 * 2
    best = max(likelihood_by_hand(weight, codes, generator.dirichlet(np.ones(6)).reshape(2, 3)) for _ in range(300))
    assert found >= best
    independent = score_dag(joint, (2, 3), np.zeros((2, 2), dtype=int), n_steps=5000, tolerance=1e-12)[0]
    assert independent < found


def test_known_levels_leave_one_column_each() -> None:
    codes = np.array([[0, 1], [2, -1]])
    joint = with_observed(np.zeros((2, 2)), codes, (3, 2)).reshape(2, 2, 3, 2)
    assert np.isfinite(joint[0]).sum() == 2
    assert np.isfinite(joint[0, :, 0, 1]).all()
    assert np.isfinite(joint[1]).sum() == 4
    assert np.isfinite(joint[1, :, 2]).all()


def test_of_two_observed_nodes_the_likelihood_is_that_of_counts() -> None:
    codes = np.random.default_rng(1).integers(0, 2, (50, 2))
    joint = with_observed(np.zeros((50, 1)), codes, (2, 2))
    counts = np.zeros((2, 2))
    np.add.at(counts, tuple(codes.T), 1)
    expected = (counts * np.log(counts / 50)).sum()
    assert score_dag(joint, (2, 2), EDGE)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("codes", "levels"), [(np.zeros((2, 1), int), (2,)), (np.full((3, 1), 2), (2,))])
def test_codes_that_are_no_levels_are_refused(codes: np.ndarray, levels: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"codes: expected .* got shape .*; one row per sample"):
        with_observed(np.zeros((3, 2)), codes, levels)
