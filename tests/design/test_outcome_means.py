"""Differences of means with grouped errors: closed forms, brute force, coverage, and the permutation test."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from causalpima.inference.clusters.design import N_PERMUTATIONS, Reader, differences, outcome_means, permutation_test


def reading(values: np.ndarray, measured: np.ndarray | None = None) -> Reader:
    there = np.ones(values.shape, dtype=bool) if measured is None else measured
    return lambda rows: (values[rows], there[rows])


def test_without_groups_it_is_the_test_of_welch() -> None:
    rng = np.random.default_rng(0)
    codes = np.array([0] * 9 + [1] * 14 + [2] * 5)
    values = rng.standard_normal((28, 3)) * (1 + codes[:, None]) + codes[:, None]
    found = outcome_means(reading(values), codes, np.arange(28), 3)
    changes = differences(found)
    for outcome in (1, 2):
        ours, first = values[codes == outcome], values[codes == 0]
        welch = stats.ttest_ind(ours, first, equal_var=False)
        np.testing.assert_allclose(changes.value[outcome - 1], ours.mean(0) - first.mean(0))
        np.testing.assert_allclose(changes.value[outcome - 1] / changes.standard_error[outcome - 1], welch.statistic)
        interval = welch.confidence_interval(0.95)
        np.testing.assert_allclose(changes.lower[outcome - 1], interval.low)
        np.testing.assert_allclose(changes.upper[outcome - 1], interval.high)
    np.testing.assert_allclose(np.sqrt(found.variance), [stats.sem(values[codes == o]) for o in range(3)])
    assert found.units.tolist() == [[9] * 3, [14] * 3, [5] * 3]


def test_samples_that_repeat_their_group_say_nothing_new() -> None:
    """Every group ten times over: means and errors are those of the groups."""
    rng = np.random.default_rng(1)
    codes = np.array([0] * 6 + [1] * 8)
    values = rng.standard_normal((14, 2))
    once = differences(outcome_means(reading(values), codes, np.arange(14), 2))
    order = rng.permutation(140)
    repeated = np.repeat(values, 10, axis=0)[order]
    units = np.repeat(np.arange(14), 10)[order]
    many = differences(outcome_means(reading(repeated), codes[units], units, 2))
    for one, other in zip(once[:4], many[:4], strict=True):
        np.testing.assert_allclose(one, other)
    alone = differences(outcome_means(reading(repeated), codes[units], np.arange(140), 2))
    assert (alone.standard_error < 0.4 * once.standard_error).all(), "negative control: samples taken for independent"


def test_groups_with_both_outcomes_are_pairs() -> None:
    rng = np.random.default_rng(2)
    base = 5 * rng.standard_normal((12, 1))
    values = np.concatenate([base + rng.standard_normal((12, 2)), base + rng.standard_normal((12, 2)) + 1])
    codes, units = np.repeat([0, 1], 12), np.tile(np.arange(12), 2)
    found = differences(outcome_means(reading(values), codes, units, 2))
    paired = stats.ttest_rel(values[12:], values[:12])
    np.testing.assert_allclose(found.value[0] / found.standard_error[0], paired.statistic)
    np.testing.assert_allclose(found.lower[0], paired.confidence_interval(0.95).low)


def test_elements_that_are_missing_count_nowhere() -> None:
    rng = np.random.default_rng(3)
    codes, values = np.repeat([0, 1], 20), rng.standard_normal((40, 4))
    measured = rng.random((40, 4)) < 0.7
    measured[codes == 1, 3] = False
    measured[np.flatnonzero(codes == 0)[1:], 2] = False
    spoilt = np.where(measured, values, 1e9)
    found = outcome_means(reading(spoilt, measured), codes, np.arange(40), 2)
    changes = differences(found)
    for element in (0, 1):
        ours, first = (values[(codes == o) & measured[:, element], element] for o in (1, 0))
        welch = stats.ttest_ind(ours, first, equal_var=False)
        np.testing.assert_allclose(changes.upper[0, element], welch.confidence_interval(0.95).high)
    assert np.isnan(changes.value[0, 3]), "no sample of this outcome has it"
    assert np.isnan(changes.lower[0, 2]), "a single sample has no scatter"
    assert np.isfinite(changes.standardised).all()


def test_blocks_of_samples_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    values, codes, units = rng.standard_normal((50, 2)), rng.integers(0, 3, 50), rng.integers(0, 12, 50)
    whole = outcome_means(reading(values), codes, units, 3)
    monkeypatch.setattr("causalpima.inference.clusters.design._ROWS_AT_ONCE", 7)
    for one, other in zip(outcome_means(reading(values), codes, units, 3)[:6], whole[:6], strict=True):
        np.testing.assert_allclose(one, other)


def test_explained_is_the_correlation_ratio_and_standardised_the_difference_in_deviations() -> None:
    rng = np.random.default_rng(5)
    codes = np.repeat([0, 1], 5000)
    values = 2.0 * rng.standard_normal((10_000, 2)) + codes[:, None] * np.array([1.0, -3.0])
    found = outcome_means(reading(values), codes, np.arange(10_000), 2)
    between, total = sum(values[codes == o].var(0).sum() / 2 for o in (0, 1)), values.var(0).sum()
    np.testing.assert_allclose(found.explained, 1 - between / total, rtol=1e-10)
    np.testing.assert_allclose(differences(found).standardised, np.sqrt((1 + 9) / 8), rtol=0.05)


def test_intervals_cover_as_often_as_they_say() -> None:
    """2000 draws of groups of two; 3 standard errors of a share of 0.95."""
    rng = np.random.default_rng(6)
    codes, units = np.repeat([0, 1], [20, 12]), np.repeat(np.arange(16), 2)
    group = np.repeat(rng.standard_normal((16, 2000)), 2, axis=0)
    values = group * np.where(codes == 0, 1.0, 2.0)[:, None] + 0.5 * rng.standard_normal((32, 2000))
    found = differences(outcome_means(reading(values), codes, units, 2))
    covered = ((found.lower < 0) & (found.upper > 0)).mean()
    assert abs(covered - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 2000)


def test_the_p_value_is_that_of_all_permutations() -> None:
    values = np.array([[0.1], [0.4], [0.3], [0.9], [1.3], [0.8], [0.2]])
    codes = np.array([0, 0, 0, 1, 1, 1, 1])

    def mean_difference(c: np.ndarray) -> float:
        return abs(values[c == 1].mean() - values[c == 0].mean())

    every = np.array([mean_difference(codes[list(order)]) for order in permutations(range(7))])
    exact = (every >= mean_difference(codes) * (1 - 1e-9)).mean()
    found = permutation_test(reading(values), codes, np.arange(7), 2, np.random.default_rng(0))
    assert found.n_permutations == N_PERMUTATIONS
    assert abs(found.p_value - exact) < 4 * np.sqrt(exact * (1 - exact) / N_PERMUTATIONS) + 1 / N_PERMUTATIONS


@pytest.mark.parametrize("shared", [False, True])
def test_p_values_are_even_where_nothing_differs(shared: bool) -> None:
    """Groups with an effect of their own: whole groups, or both outcomes in each."""
    rng, found = np.random.default_rng(7), []
    units = np.repeat(np.arange(20), 2)
    for _ in range(60):
        codes = np.tile([0, 1], 20) if shared else np.repeat(rng.permutation([0] * 10 + [1] * 10), 2)
        values = 3 * np.repeat(rng.standard_normal((20, 3)), 2, axis=0) + rng.standard_normal((40, 3))
        found.append(permutation_test(reading(values), codes, units, 2, rng).p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_an_effect_within_groups_is_found() -> None:
    rng = np.random.default_rng(8)
    units, codes = np.repeat(np.arange(15), 2), np.tile([0, 1], 15)
    values = (
        5 * np.repeat(rng.standard_normal((15, 2)), 2, axis=0) + codes[:, None] + 0.3 * rng.standard_normal((30, 2))
    )
    found = permutation_test(reading(values), codes, units, 2, rng)
    assert found.p_value == 1 / (1 + N_PERMUTATIONS)
    as_if_independent = permutation_test(reading(values), codes, np.arange(30), 2, rng)
    assert as_if_independent.p_value > 0.01, "negative control: the scatter of groups hides it"


def test_many_elements_are_spread_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.clusters.design._MOST_VALUES", 640)
    values = np.random.default_rng(9).standard_normal((20, 100))
    measured = np.ones_like(values, dtype=bool)
    measured[:, :10] = False
    found = permutation_test(
        reading(values, measured), np.repeat([0, 1], 10), np.arange(20), 2, np.random.default_rng(0)
    )
    assert found.n_elements == 32
