"""Labellings of what was really found, against brute force over all injections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product

import pytest
from brute_force import cells_of, count_by_trying
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.inference.clusters.counting import VisibleOrder, _Search, count_labellings, recount

Cell = tuple[int, ...]


def by_trying(
    outcomes: Sequence[int],
    visible: Sequence[set[int]],
    occupied: Sequence[Cell],
    levels: Sequence[Sequence[int]],
    labelled: set[int],
) -> int:
    """All injections of the occupied cells; two mean the same if their nodes split them in the same ways."""
    meanings = set()
    for target in permutations(list(product(*map(range, outcomes))), len(occupied)):
        if _fits(target, occupied, visible, levels, labelled):
            splits = [_split(node, target, visible, labelled) for node in range(len(outcomes))]
            meanings.add(tuple(sorted(map(repr, zip(map(str, outcomes), splits, strict=True)))))
    return len(meanings)


def _fits(
    target: Sequence[Cell],
    occupied: Sequence[Cell],
    visible: Sequence[set[int]],
    levels: Sequence[Sequence[int]],
    labelled: set[int],
) -> bool:
    pairs = list(product(range(len(target)), repeat=2))
    for nodes, found in zip(visible, levels, strict=True):
        if any(found[i] != found[j] and all(target[i][n] == target[j][n] for n in nodes) for i, j in pairs):
            return False
    return all(target[i][node] == occupied[i][node] for node in labelled for i in range(len(target)))


def _split(node: int, target: Sequence[Cell], visible: Sequence[set[int]], labelled: set[int]) -> tuple[object, ...]:
    """Which cells have the same outcome of this node, and who sees it."""
    values = [cell[node] for cell in target]
    groups = sorted(tuple(i for i, value in enumerate(values) if value == each) for each in set(values))
    seen = tuple(node in nodes for nodes in visible)
    return (seen, node if node in labelled else None, tuple(groups))


@st.composite
def findings(
    draw: st.DrawFn,
) -> tuple[tuple[int, ...], list[set[int]], list[Cell], list[list[int]], set[int]]:
    """Nodes, a mask, some of the cells, and levels of which some are alike."""
    outcomes = draw(st.sampled_from([(2, 2), (2, 3), (3, 2), (2, 2, 2)]))
    nodes = range(len(outcomes))
    visible = draw(st.lists(st.sets(st.sampled_from(nodes), min_size=1), min_size=1, max_size=3))
    unseen = set(nodes) - set().union(*visible)
    visible += [unseen] if unseen else []
    cells = [tuple(cell) for cell in cells_of(outcomes).tolist()]
    occupied = draw(st.lists(st.sampled_from(cells), min_size=1, max_size=6, unique=True))
    levels = []
    for sees in visible:
        combinations = sorted({tuple(cell[n] for n in sorted(sees)) for cell in occupied})
        names = draw(st.lists(st.integers(0, 3), min_size=len(combinations), max_size=len(combinations)))
        name = dict(zip(combinations, names, strict=True))
        levels.append([name[tuple(cell[n] for n in sorted(sees))] for cell in occupied])
    return outcomes, visible, occupied, levels, draw(st.sets(st.sampled_from(nodes), max_size=1))


@settings(deadline=None, max_examples=60)
@given(findings())
def test_equals_brute_force(
    found: tuple[tuple[int, ...], list[set[int]], list[Cell], list[list[int]], set[int]],
) -> None:
    outcomes, visible, occupied, levels, labelled = found
    result = recount(outcomes, visible, occupied, levels, labelled=labelled)
    if result.count is None:
        signatures = list(zip(*levels, strict=True))
        assert len(set(signatures)) < len(signatures)
        assert "same level in every modality" in result.reason
    else:
        assert result.count == result.at_least == by_trying(outcomes, visible, occupied, levels, labelled)


MASKS = [[{0, 1}, {1, 2}, {0, 2}], [{0, 1}, {2}, {1}], [{0, 1}, {1, 2}], [{0, 1, 2}]]


@pytest.mark.parametrize("visible", MASKS)
def test_all_cells_and_levels_are_the_count_before_fitting(visible: list[set[int]]) -> None:
    assert recount((2, 2, 2), visible).count == count_labellings((2, 2, 2), visible)


@pytest.mark.parametrize(
    "visible",
    [
        [{0, 1}, {1, 2}, {2, 3}],
        [{0, 1}, {1, 2}, {2, 3}, {3, 0}],
        [{0, 1, 2}, {1, 2, 3}, {0, 3}],
        [{0, 1}, {2}, {3}],
        [{0, 1}, {2, 3}],
    ],
)
def test_four_nodes_by_the_search_equal_the_formula(visible: list[set[int]]) -> None:
    cells = [tuple(cell) for cell in cells_of((2, 2, 2, 2)).tolist()]
    levels = [[int("".join(str(cell[n]) for n in sorted(nodes)), 2) for cell in cells] for nodes in visible]
    order = VisibleOrder.of((2, 2, 2, 2), visible)
    searched = _Search(order, [sorted(nodes) for nodes in visible], cells, levels, 10**6).result()
    assert searched.count == count_labellings((2, 2, 2, 2), visible)


def test_an_empty_cell_or_a_merged_level_leaves_more() -> None:
    visible = [{0, 1}, {1, 2}, {0, 2}]
    cells = [tuple(cell) for cell in cells_of((2, 2, 2)).tolist()]
    few = recount((2, 2, 2), visible, cells[:5])
    assert few.count is not None
    assert few.count > 1
    levels = [[2 * cell[a] + cell[b] for cell in cells] for a, b in ((0, 1), (1, 2))]
    assert recount((2, 2, 2), visible, cells, [*levels, [0] * 8]).count == count_by_trying((2, 2, 2), visible[:2])


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_nodes_that_a_modality_sees_alone_need_no_more_cells(data: st.DataObject) -> None:
    outcomes = data.draw(st.sampled_from([(2, 2), (2, 3), (2, 2, 2)]))
    cells = [tuple(cell) for cell in cells_of(outcomes).tolist()]
    occupied = data.draw(st.lists(st.sampled_from(cells), min_size=2, max_size=5, unique=True))
    visible = [{node} for node in range(len(outcomes))]
    levels = [[cell[node] for cell in occupied] for node in range(len(outcomes))]
    found = recount(outcomes, visible, occupied, levels)
    assert found.count == by_trying(outcomes, visible, occupied, levels, set())
    if all(len(set(seen)) == size for seen, size in zip(levels, outcomes, strict=True)):
        assert found.count == 1


def test_many_nodes_that_are_seen_alone_are_settled_although_cells_are_rare() -> None:
    cells = [tuple(int(bit) for bit in f"{number:06b}") for number in range(0, 64, 3)]
    assert recount((2,) * 6, [{node} for node in range(6)], cells).count == 1
    merged = [[cell[node] for cell in cells] for node in range(5)]
    assert recount((2,) * 6, [{node} for node in range(6)], cells, [*merged, [0] * len(cells)]).count != 1


def test_a_search_that_is_too_long_gives_a_lower_bound() -> None:
    cells = cells_of((2, 2, 2, 2)).tolist()[:15]
    found = recount((2, 2, 2, 2), None, cells, most_steps=2000)
    assert found.count is None
    assert 1 <= found.at_least <= 2000
    assert "counting stopped" in found.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"occupied_cells": [(0, 2)]}, r"occupied_cells: expected cells of \(2, 2\) outcomes, each once, got \(0, 2\)"),
        ({"occupied_cells": [(0, 1), (0, 1)]}, "occupied_cells: .* each once"),
        ({"occupied_cells": []}, "occupied_cells: expected cells"),
        ({"levels": [[0, 1]]}, "levels: expected 4 cells for each of 2 modalities"),
        ({"levels": [[0, 1, 2, 2], [0, 1, 0, 1]]}, "levels: expected one level for cells .* in modality 0"),
    ],
)
def test_what_cannot_have_been_found_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recount((2, 2), [{0}, {1}], **arguments)  # type: ignore[arg-type]
