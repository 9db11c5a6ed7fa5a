"""Levels of a modality that sees some of the nodes."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from causalpima.models.block_mixture import level_of_cell, n_levels


@given(st.lists(st.integers(2, 3), min_size=1, max_size=4), st.data())
def test_levels_number_the_outcomes_of_the_visible_nodes(outcomes: list[int], data: st.DataObject) -> None:
    visible = data.draw(st.lists(st.sampled_from(range(len(outcomes))), min_size=1, unique=True))
    seen = [tuple(cell[node] for node in sorted(visible)) for cell in product(*map(range, outcomes))]
    number = {values: index for index, values in enumerate(sorted(set(seen)))}
    assert level_of_cell(outcomes, visible).tolist() == [number[values] for values in seen]
    assert n_levels(outcomes, visible) == len(number)
