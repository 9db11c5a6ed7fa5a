"""Numbers of cells that keep a block of Z per node: exchanges of nodes and names of outcomes, nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from causalpima.inference.clusters.matching import nearest_renaming

OUTCOMES = (2, 3, 2)
CELLS = list(itertools.product(*map(range, OUTCOMES)))


def renamings() -> list[np.ndarray]:
    """All of them: two nodes have two outcomes and can change places."""
    found = []
    for exchange, one, three, two in itertools.product(
        (False, True),
        itertools.permutations(range(2)),
        itertools.permutations(range(3)),
        itertools.permutations((0, 1)),
    ):
        names = [(one[a], three[b], two[c]) for a, b, c in CELLS]
        found.append(np.array([CELLS.index((c, b, a) if exchange else (a, b, c)) for a, b, c in names]))
    return found


def test_there_are_as_many_as_exchanges_times_names() -> None:
    assert len({tuple(permutation) for permutation in renamings()}) == 2 * 2 * 6 * 2


@pytest.mark.parametrize("seed", range(5))
def test_what_was_renamed_is_found_through_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for permutation in renamings():
        counts = rng.uniform(5, 20, 12)
        agreement = np.eye(12)[permutation] * counts[:, None] + rng.uniform(0, 0.3, (12, 12))
        np.testing.assert_array_equal(nearest_renaming(agreement, OUTCOMES), permutation)


def test_what_is_no_renaming_comes_as_near_as_it_can() -> None:
    """Two cells that differ in several nodes change places: that many stay where they were."""
    permutation = np.arange(12)
    permutation[[0, 11]] = [11, 0]
    agreement = np.eye(12)[permutation]
    found = nearest_renaming(agreement, OUTCOMES)
    assert any(np.array_equal(found, one) for one in renamings())
    score = max(agreement[np.arange(12), one].sum() for one in renamings())
    assert agreement[np.arange(12), found].sum() == score


def test_without_knowledge_numbers_stay() -> None:
    np.testing.assert_array_equal(nearest_renaming(np.ones((12, 12)), OUTCOMES), np.arange(12))
