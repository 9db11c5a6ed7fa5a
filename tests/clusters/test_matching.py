"""Numbers of cells kept across read-outs, against brute force over all bijections."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.clusters.clustering import ReadOut
from causalpima.inference.clusters.matching import match_cells, relabel


def responsibilities(n: int, C: int, seed: int) -> np.ndarray:
    """Random, with cells of unequal mass."""
    generator = np.random.default_rng(seed)
    return generator.dirichlet(np.linspace(0.2, 1.0, C), size=n)


def agreement(previous: np.ndarray, new: np.ndarray, permutation: tuple[int, ...]) -> float:
    """Expected number of samples in the same cell, where cell c of `new` is called `permutation[c]`."""
    return sum(
        float(new[n, c] * previous[n, renamed]) for n in range(len(new)) for c, renamed in enumerate(permutation)
    )


@given(n=st.integers(1, 12), C=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_no_bijection_agrees_better(n: int, C: int, seed: int) -> None:
    previous, new = responsibilities(n, C, seed), responsibilities(n, C, seed + 1)
    found = match_cells(previous, new)
    best = max(agreement(previous, new, p) for p in permutations(range(C)))
    assert sorted(found) == list(range(C))
    assert agreement(previous, new, tuple(found)) == pytest.approx(best, rel=1e-12)


def test_the_direction_of_the_permutation() -> None:
    previous = responsibilities(50, 4, 0)
    order = np.array([2, 0, 3, 1])  # no involution: its inverse is another permutation
    new = previous[:, order]
    found = match_cells(previous, new)
    assert found.tolist() == order.tolist()
    assert np.argsort(order).tolist() != order.tolist()
    np.testing.assert_array_equal(new[:, np.argsort(found)], previous)


def test_an_empty_cell_takes_the_number_that_is_left() -> None:
    previous = np.eye(3)[[0, 0, 0, 1, 1, 2]]
    new = np.eye(3)[[1, 1, 1, 0, 0, 0]]
    assert match_cells(previous, new).tolist() == [1, 0, 2]


def a_read_out(seed: int) -> ReadOut:
    return ReadOut(responsibilities(30, 6, seed), np.array([0, 1, 1, 2, 3, 0]), 4, ())


def test_relabelled_cells_keep_the_numbers_of_an_earlier_read_out() -> None:
    earlier = a_read_out(0)
    later = relabel(earlier, np.array([2, 0, 3, 1]))
    assert later.component_cell.tolist() == [2, 0, 0, 3, 1, 2]
    np.testing.assert_array_equal(later.cell_responsibilities[:, 3], earlier.cell_responsibilities[:, 2])
    back = relabel(later, match_cells(earlier.cell_responsibilities, later.cell_responsibilities))
    np.testing.assert_array_equal(back.component_cell, earlier.component_cell)


def test_relabelling_changes_names_only() -> None:
    earlier = a_read_out(1)
    later = relabel(earlier, np.array([1, 2, 0, 3]))
    np.testing.assert_array_equal(later.responsibilities, earlier.responsibilities)
    assert later.entropy == pytest.approx(earlier.entropy, rel=1e-14)
    assert (later.n_occupied, later.n_cells, later.candidates) == (earlier.n_occupied, 4, ())
    assert earlier.component_cell.tolist() == [0, 1, 1, 2, 3, 0]


@pytest.mark.parametrize("permutation", [[0, 1, 2], [0, 0, 1, 2], [1, 2, 3, 4], [0, 1, 2, 3, 4]])
def test_what_is_no_permutation_is_refused(permutation: list[int]) -> None:
    with pytest.raises(ValueError, match=r"permutation: expected each of 0\.\.3 once, got \["):
        relabel(a_read_out(0), np.array(permutation))


def test_responsibilities_that_cannot_be_compared_are_refused() -> None:
    previous = responsibilities(5, 3, 0)
    with pytest.raises(ValueError, match=r"new: expected .*\(5, 3\), got \(5, 2\)"):
        match_cells(previous, previous[:, :2])
    with pytest.raises(ValueError, match="new: expected finite"):
        match_cells(previous, np.where(previous > 0.9, np.nan, previous))
    with pytest.raises(ValueError, match="previous: expected finite"):
        match_cells(np.full((5, 3), np.inf), previous)
