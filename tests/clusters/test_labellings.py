"""Number of equivalent labellings against brute force over all bijections."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.clusters.labellings import equivalent_labellings


def distinct_meanings(outcomes: tuple[int, ...]) -> int:
    """Enumerate cluster -> cell bijections; two mean the same if their nodes split the clusters in the same ways."""
    cells = list(product(*map(range, outcomes)))
    meanings = set()
    for labelling in permutations(cells):
        splits = []
        for node, n_outcomes in enumerate(outcomes):
            groups = ([k for k, cell in enumerate(labelling) if cell[node] == c] for c in range(n_outcomes))
            splits.append(tuple(sorted(tuple(group) for group in groups)))
        meanings.add(tuple(sorted(splits)))
    return len(meanings)


@pytest.mark.parametrize("outcomes", [(2,), (5,), (2, 2), (2, 3), (3, 2), (2, 2, 2)])
def test_equals_brute_force(outcomes: tuple[int, ...]) -> None:
    assert equivalent_labellings(outcomes) == distinct_meanings(outcomes)


def test_known_counts() -> None:
    assert equivalent_labellings((2, 2)) == 3
    assert equivalent_labellings((2, 2, 2)) == 840
    assert equivalent_labellings((2, 2, 2, 2)) == factorial(16) // (2**4 * 24)


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4))
def test_is_an_exact_integer_whatever_the_order(outcomes: list[int]) -> None:
    count = equivalent_labellings(outcomes)
    assert count == equivalent_labellings(outcomes[::-1]) >= 1
    group = prod(map(factorial, outcomes)) * prod(factorial(outcomes.count(k)) for k in set(outcomes))
    assert count * group == factorial(prod(outcomes))


def test_large_counts_do_not_overflow() -> None:
    assert equivalent_labellings((2,) * 9) > 10**1000


@pytest.mark.parametrize("outcomes", [(), (1,), (2, 1), (2, 0)])
def test_refuses_constant_nodes(outcomes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="outcomes: expected at least 2 per node, got"):
        equivalent_labellings(outcomes)
