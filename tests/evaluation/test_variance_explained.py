"""Sums per cell and shares of variance: against one-way analysis of variance, gaps, soft weights."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.findings.explained_variance import (
    CellMoments,
    VarianceExplained,
    WeightedValues,
    cell_moments,
    variance_explained,
)


def moments(r: np.ndarray, values: np.ndarray, measured: np.ndarray | None = None, pivot: float = 0.0) -> CellMoments:
    measured = np.ones_like(values) if measured is None else measured
    blocks = np.array_split(np.arange(len(r)), 3)
    return cell_moments((WeightedValues(r[rows], values[rows], measured[rows]) for rows in blocks), pivot)


def explained(found: CellMoments, outcomes: tuple[int, ...] = (2, 3)) -> VarianceExplained:
    return variance_explained(found, outcomes, np.random.default_rng(0))


def example(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Node 1 moves the first element, node 2 the second and a little of the first."""
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 2, n), rng.integers(0, 3, n)
    values = np.stack([5.0 * one + two, 3.0 * two], axis=1) + rng.normal(0, 1, (n, 2)) + 100
    return one, two, values


def share(groups: np.ndarray, values: np.ndarray) -> float:
    """Between over total sum of squares, written out."""
    total = np.square(values - values.mean(0)).sum()
    fitted = np.stack([values[groups == group].mean(0) for group in groups])
    return float(np.square(fitted - values.mean(0)).sum() / total)


def test_hard_clusters_give_the_correlation_ratio() -> None:
    one, two, values = example()
    found = explained(moments(np.eye(6)[3 * one + two], values))
    np.testing.assert_allclose(found.nodes, [share(one, values), share(two, values)])
    assert found.cells == pytest.approx(share(3 * one + two, values))
    assert found.nodes.max() < found.cells
    assert found.random.mean() < found.nodes.mean()


def test_a_pivot_changes_nothing() -> None:
    one, two, values = example()
    r = np.eye(6)[3 * one + two]
    np.testing.assert_allclose(explained(moments(r, values, pivot=100.0)).nodes, explained(moments(r, values)).nodes)
    np.testing.assert_allclose(moments(r, values).means()[:, 0] - 100, moments(r, values, pivot=100.0).means()[:, 0])


def test_missing_elements_play_no_part() -> None:
    one, two, values = example()
    measured = (np.random.default_rng(1).random(values.shape) < 0.7).astype(float)
    spoiled = np.where(measured > 0, values, 1e6)
    found = explained(moments(np.eye(6)[3 * one + two], spoiled, measured))
    between = total = 0.0
    for element in range(2):
        rows = measured[:, element] > 0
        column = values[rows, element : element + 1]
        spread = np.square(column - column.mean()).sum()
        between, total = between + share(one[rows], column) * spread, total + spread
    assert found.nodes[0] == pytest.approx(between / total)


def test_weights_that_say_nothing_explain_nothing() -> None:
    _, _, values = example()
    found = explained(moments(np.full((400, 6), 1 / 6), values))
    np.testing.assert_allclose(found.nodes, 0, atol=1e-12)
    assert found.cells == pytest.approx(0, abs=1e-12)
    constant = explained(moments(np.eye(6)[np.arange(400) % 6], np.ones((400, 2))))
    assert constant.cells == 0


def test_empty_cells_have_the_overall_mean() -> None:
    _, _, values = example(9)
    found = moments(np.eye(6)[np.zeros(9, dtype=int)], values)
    np.testing.assert_allclose(found.means(), np.broadcast_to(values.mean(0), (6, 2)))
    with pytest.raises(ValueError, match="batches: expected at least one sample"):
        cell_moments([])
