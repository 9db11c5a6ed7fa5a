from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.graphs.scores import (
    log_sums_over_subsets,
    log_sums_over_supersets,
    maxima_over_subsets,
    members,
    outside,
    sets_by_size,
    subsets_of,
)

TABLE = np.random.default_rng(0).normal(size=(2, 16))
TABLE[0, [0, 4]] = -np.inf
SETS = range(16)


def test_sums_and_maxima_over_subsets() -> None:
    for found, reduce in ((log_sums_over_subsets, np.logaddexp.reduce), (maxima_over_subsets, np.max)):
        wanted = [[reduce([row[s] for s in SETS if s & u == s]) for u in SETS] for row in TABLE]
        np.testing.assert_allclose(found(TABLE), wanted, rtol=1e-14)


def test_sums_over_supersets() -> None:
    wanted = [[np.logaddexp.reduce([row[s] for s in SETS if s & u == u]) for u in SETS] for row in TABLE]
    np.testing.assert_allclose(log_sums_over_supersets(TABLE), wanted, rtol=1e-14)


def test_the_table_that_comes_in_stays_as_it_is() -> None:
    before = TABLE.copy()
    log_sums_over_subsets(TABLE)
    np.testing.assert_array_equal(TABLE, before)


@pytest.mark.parametrize("nodes", [0, 1, 0b1011, 0b1111])
def test_subsets_of_a_set(nodes: int) -> None:
    assert subsets_of(nodes).tolist() == [s for s in SETS if s & nodes == s]


def test_bits_are_nodes() -> None:
    assert members(np.array(0b1010), 4).tolist() == [False, True, False, True]
    assert outside(np.array([0b0011, 0b1001]), 4).tolist() == [[2, 3], [1, 2]]
    assert [len(sets) for sets in sets_by_size(4)] == [1, 4, 6, 4, 1]
