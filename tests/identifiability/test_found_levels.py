"""Cells and levels as a fit found them, and the count from there."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.clusters.counting import count_labellings
from causalpima.inference.clusters.identify import alike_levels, recount_found

CELLS = np.array([[a, b, c] for a in range(2) for b in range(2) for c in range(2)])
PAIRS = [(0, 1), (1, 2)]


def certain(number: np.ndarray, n: int) -> np.ndarray:
    """A posterior that is certain, `[len(number), n]`."""
    return np.eye(n)[number]


def levels_of(cells: np.ndarray, nodes: tuple[int, int]) -> np.ndarray:
    return certain(2 * CELLS[cells][:, nodes[0]] + CELLS[cells][:, nodes[1]], 4)


def test_all_cells_and_clear_levels_give_the_count_before_the_fit() -> None:
    samples = np.repeat(np.arange(8), 5)
    found = recount_found((2, 2, 2), PAIRS, certain(samples, 8), [levels_of(samples, pair) for pair in PAIRS])
    assert found.count == count_labellings((2, 2, 2), PAIRS) == 4
    alone = certain(samples, 8)
    assert recount_found((2, 2, 2), None, alone, [alone]).count == 840


def test_an_empty_cell_or_levels_that_overlap_leave_more_or_no_number() -> None:
    samples = np.repeat(np.arange(7), 5)
    empty = recount_found((2, 2, 2), PAIRS, certain(samples, 8), [levels_of(samples, pair) for pair in PAIRS])
    assert empty.count is not None
    assert empty.count >= 4
    samples = np.repeat(np.arange(8), 5)
    blurred = levels_of(samples, (1, 2)) @ np.array([[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    overlapping = recount_found((2, 2, 2), PAIRS, certain(samples, 8), [levels_of(samples, (0, 1)), blurred])
    assert overlapping.count is None
    assert "same level in every modality" in overlapping.reason


def test_levels_are_alike_by_overlap_and_in_chains() -> None:
    clear = np.eye(4)[np.repeat(np.arange(4), 10)]
    assert len(set(alike_levels(clear))) == 4
    # 40 % of level 0 lie among the samples of level 1, and 40 % of level 1 among those of level 2.
    mixed = clear @ np.array([[0.6, 0.4, 0, 0], [0, 0.6, 0.4, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    group = alike_levels(mixed)
    assert group[0] == group[1] == group[2] != group[3]
    slight = clear @ np.array([[0.9, 0.1, 0, 0], [0, 0.9, 0.1, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    assert len(set(alike_levels(slight))) == 4


def test_a_level_without_mass_joins_no_group() -> None:
    posterior = np.pad(np.eye(3)[np.repeat(np.arange(3), 4)], ((0, 0), (0, 1)))
    assert len(set(alike_levels(posterior))) == 4


@pytest.mark.parametrize(
    ("cells", "levels", "message"),
    [
        (np.ones((2, 3)), [np.ones((2, 4))], r"cells: expected a posterior of shape \[n, 4\], got \(2, 3\)"),
        (np.ones((2, 4)), [np.ones((2, 2))], r"levels: expected a posterior of shape \[n, 4\], got \(2, 2\)"),
        (np.ones((2, 4)), [], "levels: expected one posterior for each of 1 modalities, got 0"),
    ],
)
def test_other_shapes_are_refused(cells: np.ndarray, levels: list[np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recount_found((2, 2), None, cells, levels)
