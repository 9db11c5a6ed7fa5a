"""Which cells are occupied, and which fits collapsed."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.clusters.clustering import (
    collapse_reason,
    count_occupied,
    fit_status,
    mean_entropy,
    occupied_from,
    uncertainty_coefficient,
)


def hard(*sizes: int) -> np.ndarray:
    """q(N|X) without doubt, of cells of these sizes."""
    return np.repeat(np.eye(len(sizes)), sizes, axis=0)


def equal(n: int, n_cells: int, noise: float = 1e-3) -> np.ndarray:
    """An entropy of ln C, but for noise that makes each cell the most probable one of some samples."""
    r = 1 + noise * np.random.default_rng(0).random((n, n_cells))
    return r / r.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("n_samples", "n_cells", "expected"), [(1600, 8, 10.0), (100, 8, 3.0), (30, 15, 3.0), (100_000, 500, 10.0)]
)
def test_a_twentieth_of_the_even_share_and_three_samples(n_samples: int, n_cells: int, expected: float) -> None:
    assert occupied_from(n_samples, n_cells) == expected


@pytest.mark.parametrize(
    ("r", "n_occupied", "status"),
    [
        (hard(100, 100), 2, "ok"),
        (hard(399, 1), 1, "collapsed"),  # one outlier, and everything else
        (hard(17, 3), 2, "ok"),
        (hard(18, 2), 1, "collapsed"),
        (hard(400, 0), 1, "collapsed"),
        (hard(200, 200, 0, 0), 2, "ok"),
        (hard(200, 200, 0, 0, 0), 2, "collapsed"),
        (hard(1581, 10, 9, *[0] * 5), 2, "collapsed"),
        (hard(*[4] * 300), 300, "ok"),  # beyond two hundred cells, few samples in each
        (hard(*[4] * 149, *[2] * 150), 149, "collapsed"),
        (hard(40), 1, "ok"),
        (equal(4000, 4), 4, "collapsed"),
    ],
)
def test_status(r: np.ndarray, n_occupied: int, status: str) -> None:
    assert (count_occupied(r), fit_status(r)) == (n_occupied, status)


def test_vague_mass_makes_no_cell() -> None:
    r = np.tile([0.45, 0.55], (50, 1))
    assert count_occupied(r) == 1


def test_the_uncertainty_coefficient_by_hand() -> None:
    r = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    h = -(r * np.log(np.where(r > 0, r, 1))).sum(1).mean()
    mean = r.mean(0)
    total = -(mean * np.log(mean)).sum()
    assert mean_entropy(r) == pytest.approx(h, rel=1e-14)
    assert uncertainty_coefficient(r) == pytest.approx((total - h) / total, rel=1e-12)
    assert uncertainty_coefficient(hard(3, 7)) == 1.0
    assert uncertainty_coefficient(hard(10, 0)) == 0.0
    assert uncertainty_coefficient(np.full((9, 3), 1 / 3)) == pytest.approx(0.0, abs=1e-12)


def test_groups_that_overlap_are_no_collapse() -> None:
    """Two Gaussians of distance 1.5 are one hump, and a classifier is still right in 77 %."""
    x = np.random.default_rng(7).normal(size=4000) + np.repeat([0.0, 1.5], 2000)
    first = 1 / (1 + np.exp(1.5 * (x - 0.75)))
    assert fit_status(np.column_stack([first, 1 - first])) == "ok"
    assert collapse_reason(2, 2, None) == ""


def test_what_collapsed_is_said() -> None:
    assert collapse_reason(8, 3, 1.0) == "3 of 8 clusters are occupied"
    assert "a sample removes 2 % of the entropy of the clusters" in collapse_reason(8, 8, 0.02)


@pytest.mark.parametrize("rows", [7, 2**14])
def test_entropy_in_blocks(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    r = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 50)
    r[:5] = np.eye(4)[0]
    expected = -np.where(r > 0, r * np.log(np.where(r > 0, r, 1)), 0).sum(1).mean()
    monkeypatch.setattr("causalpima.inference.clusters.clustering._ROWS_AT_ONCE", rows)
    assert mean_entropy(r) == pytest.approx(expected, rel=1e-14)
