"""Merging of components against a literal reading of its definition."""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.clusters.clustering import merge_components


def by_hand(
    R: np.ndarray, n_cells: int, assign_once: bool = False, share_of_target: bool = False, smaller: bool = False
) -> list[int]:
    """DEMP by loops over samples and pairs; the three flags are the mistakes that the test must tell from it."""
    groups = [[k] for k in range(R.shape[1])]
    first_choice = [int(np.argmax(row)) for row in R]
    while len(groups) > n_cells:
        values = [[sum(row[k] for k in group) for group in groups] for row in R]
        choice = [int(np.argmax(v)) for v in values]
        if assign_once:
            choice = [next(g for g, group in enumerate(groups) if k in group) for k in first_choice]

        def share(i: int, j: int, values: list[list[float]] = values, choice: list[int] = choice) -> float:
            of = j if share_of_target else i
            overlap = sum(v[i] for v, a in zip(values, choice, strict=True) if a == j)
            return round(float(overlap / sum(v[of] for v in values)), 12)

        best = min if smaller else max
        i, j = max(combinations(range(len(groups)), 2), key=lambda p: best(share(*p), share(*p[::-1])))
        groups[i] = sorted(groups[i] + groups.pop(j))
    return [next(g for g, group in enumerate(groups) if k in group) for k in range(R.shape[1])]


def responsibilities(n: int, K: int, sharpness: float, seed: int) -> np.ndarray:
    """Random, unequal masses."""
    generator = np.random.default_rng(seed)
    logits = sharpness * generator.normal(size=(n, K)) + generator.normal(size=K)
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@given(
    n=st.integers(5, 40),
    K=st.integers(1, 8),
    n_cells=st.integers(1, 8),
    sharpness=st.floats(0.3, 3.0),
    seed=st.integers(0, 10**6),
)
def test_equals_the_definition(n: int, K: int, n_cells: int, sharpness: float, seed: int) -> None:
    R = responsibilities(n, K, sharpness, seed)
    assert merge_components(R, n_cells).tolist() == by_hand(R, n_cells)


@pytest.mark.parametrize("mistake", ["assign_once", "share_of_target", "smaller"])
def test_the_definition_tells_mistakes_apart(mistake: str) -> None:
    cases = [responsibilities(40, 7, 1.5, seed) for seed in range(30)]
    assert any(merge_components(R, 3).tolist() != by_hand(R, 3, **{mistake: True}) for R in cases)


def test_a_small_component_inside_a_large_one_is_merged_before_two_equal_neighbours() -> None:
    #        large  inside  left  right
    R = np.array(
        [[0.9, 0.1, 0.0, 0.0]] * 20
        + [[0.55, 0.45, 0.0, 0.0]] * 4
        + [[0.0, 0.0, 0.7, 0.3]] * 10
        + [[0, 0, 0.3, 0.7]] * 10
    )
    assert merge_components(R, 3).tolist() == [0, 0, 1, 2]
    assert merge_components(R, 2).tolist() == [0, 0, 1, 1]


def test_cells_are_numbered_by_their_first_component() -> None:
    R = np.eye(5)[[0, 1, 2, 3, 4] * 8] * 0.6 + np.eye(5)[[3, 4, 2, 0, 1] * 8] * 0.4
    assert merge_components(R, 3).tolist() == [0, 1, 2, 0, 1]


def test_components_without_mass_do_not_take_the_place_of_cells() -> None:
    R = responsibilities(60, 3, 8.0, 0)
    with_dead = np.insert(R, [0, 2], 0.0, axis=1)
    cell = merge_components(with_dead, 3)
    mass_per_cell = np.bincount(cell, weights=with_dead.sum(axis=0), minlength=3)
    assert sorted(mass_per_cell) == pytest.approx(sorted(R.sum(axis=0)))


def test_the_order_of_components_does_not_matter() -> None:
    R = responsibilities(200, 9, 1.5, 3)
    order = np.random.default_rng(0).permutation(9)
    cell, shuffled = merge_components(R, 4), merge_components(R[:, order], 4)
    pairs = set(zip(cell[order].tolist(), shuffled.tolist(), strict=True))
    assert len(pairs) == 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_nothing_is_merged_where_components_are_few_and_the_argument_is_left_alone(order: Literal["C", "F"]) -> None:
    R = np.array(responsibilities(20, 3, 1.0, 1), order=order)
    before = R.copy()
    assert merge_components(R, 5).tolist() == [0, 1, 2]
    merge_components(R, 1)
    np.testing.assert_array_equal(R, before)
