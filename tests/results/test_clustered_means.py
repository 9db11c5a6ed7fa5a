"""Means per cell with clustered standard errors: against direct formulas, and their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from inference.results.clustered_means import ClusteredMeans


def accumulated(
    values: np.ndarray, share: np.ndarray, groups: np.ndarray | None = None, size: int = 7
) -> ClusteredMeans:
    means = ClusteredMeans()
    for start in range(0, len(values), size):
        rows = slice(start, start + size)
        means.add(values[rows], share[rows], None if groups is None else groups[rows])
    return means


def test_hard_cells_give_the_textbook_interval() -> None:
    generator = np.random.default_rng(0)
    values = 1e4 + generator.normal(size=(50, 2, 3))
    share = np.eye(2)[generator.integers(0, 2, 50)]
    found = accumulated(values, share).estimate()
    for cell in (0, 1):
        x = values[share[:, cell] == 1, cell]
        n = len(x)
        error = x.std(0, ddof=1) / np.sqrt(n)
        np.testing.assert_allclose(found.mean[cell], x.mean(0), rtol=1e-12)
        np.testing.assert_allclose(found.standard_error[cell], error, rtol=1e-6)
        np.testing.assert_allclose(found.upper[cell], x.mean(0) + stats.t.ppf(0.975, n - 1) * error, rtol=1e-9)
        assert found.effective[cell] == pytest.approx(n)


def test_groups_count_once() -> None:
    generator = np.random.default_rng(1)
    one = generator.normal(size=(20, 1, 2))
    thrice, groups = np.repeat(one, 3, axis=0), np.repeat(np.arange(20), 3)
    alone = accumulated(one, np.ones((20, 1))).estimate()
    found = accumulated(thrice, np.ones((60, 1)), groups).estimate()
    for first, second in zip(alone, found, strict=True):
        np.testing.assert_allclose(second, first, rtol=1e-9)
    naive = accumulated(thrice, np.ones((60, 1))).estimate()
    assert (naive.standard_error < 0.7 * found.standard_error).all(), "as if there were sixty samples"


def test_soft_shares_follow_the_formula() -> None:
    generator = np.random.default_rng(2)
    values, share = generator.normal(size=(30, 2, 1)), generator.dirichlet((1, 1), 30)
    found = accumulated(values, share).estimate()
    for cell in (0, 1):
        g, x = share[:, cell], values[:, cell, 0]
        mean = (g @ x) / g.sum()
        effective = g.sum() ** 2 / (g @ g)
        variance = effective / (effective - 1) * (g**2 @ (x - mean) ** 2) / g.sum() ** 2
        assert found.mean[cell, 0] == pytest.approx(mean)
        assert found.standard_error[cell, 0] == pytest.approx(np.sqrt(variance))


def test_too_few_samples_have_no_interval() -> None:
    share = np.zeros((10, 2))
    share[0, 0] = 1
    found = accumulated(np.ones((10, 2, 1)), share).estimate()
    assert np.isnan(found.standard_error).all()
    assert found.effective.tolist() == [1, 0]


def test_intervals_cover() -> None:
    generator = np.random.default_rng(3)
    covered = []
    for _ in range(400):
        groups = np.repeat(np.arange(12), 4)
        x = generator.normal(size=12)[groups] + 0.5 * generator.normal(size=48)
        found = accumulated(x[:, None, None], np.ones((48, 1)), groups).estimate()
        covered.append(found.lower[0, 0] <= 0 <= found.upper[0, 0])
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 400)
