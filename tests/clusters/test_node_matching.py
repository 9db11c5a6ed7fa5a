"""Renaming outcomes and exchangeable nodes so that cells keep their numbers, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.inference.clusters.matching import match_nodes, nearest_allowed

OUTCOMES = (2, 3, 2)


def allowed(outcomes: tuple[int, ...], visible: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All permutations of cells that rename outcomes and exchange nodes with the same views, by brute force."""
    cells, found = list(product(*map(range, outcomes))), []
    for order in permutations(range(len(outcomes))):
        views = [tuple(node in nodes for nodes in visible) for node in range(len(outcomes))]
        if any(outcomes[a] != outcomes[b] or views[a] != views[b] for a, b in enumerate(order)):
            continue
        for names in product(*(permutations(range(count)) for count in outcomes)):
            renamed = []
            for cell in cells:
                values = [0] * len(outcomes)
                for node, value in enumerate(cell):
                    values[order[node]] = names[node][value]
                renamed.append(cells.index(tuple(values)))
            found.append(tuple(renamed))
    return found


@given(st.integers(0, 10**6), st.sampled_from([[(0, 1), (1, 2)], [(0, 2), (1,)], [(0, 1), (1, 2), (0, 2)]]))
@settings(max_examples=20)
def test_a_renaming_that_the_mask_allows_is_undone(seed: int, visible: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(seed)
    previous = np.eye(12)[rng.integers(0, 12, 400)]
    choices = allowed(OUTCOMES, visible)
    # Nodes 0 and 2 are exchangeable where every modality sees both or neither.
    assert len(choices) == (48 if visible == [(0, 2), (1,)] else 24)
    permutation = np.array(choices[rng.integers(len(choices))])
    new = previous[:, np.argsort(permutation)][:, np.argsort(np.arange(12))]
    # cell c of `previous` is cell permutation[c] of `new`
    assert np.array_equal(new.argmax(1), permutation[previous.argmax(1)])
    found = match_nodes(previous, new, OUTCOMES, visible)
    assert np.array_equal(found[permutation], np.arange(12))


@given(st.integers(0, 10**6))
@settings(max_examples=20)
def test_what_is_found_is_always_allowed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    visible = [(0, 2), (1,)]
    previous, new = rng.dirichlet(np.ones(12), 50), rng.dirichlet(np.ones(12), 50)
    choices = allowed(OUTCOMES, visible)
    assert tuple(match_nodes(previous, new, OUTCOMES, visible)) in choices
    assert keeps(nearest_allowed(rng.random((12, 12)), OUTCOMES, visible), OUTCOMES, visible)


def test_of_a_labelling_the_part_that_the_mask_leaves_open_is_taken() -> None:
    """Labels say that the last node's outcomes are the other way round, and exchange two small cells."""
    flipped = np.array([1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10])
    permutation = flipped.copy()
    permutation[[0, 6]] = permutation[[6, 0]]
    assert np.array_equal(nearest_allowed(10.0 * np.eye(12)[permutation], OUTCOMES, [(0, 1), (1, 2)]), flipped)


@pytest.mark.parametrize(
    ("outcomes", "visible"),
    [((2, 2, 2), [(0, 1), (1, 2)]), ((2, 2, 2), [(0, 1), (2,), (1,)]), ((3, 2), [(0,), (0, 1)]), ((2, 2), [(0, 1)])],
)
def test_every_relabelling_that_the_mask_leaves_open_can_be_told_by_labels(
    outcomes: tuple[int, ...], visible: list[tuple[int, ...]]
) -> None:
    n_cells = int(np.prod(outcomes))
    every = (np.array(p) for p in permutations(range(n_cells))) if n_cells < 8 else sampled(n_cells)
    open_ones = [p for p in every if keeps(p, outcomes, visible)]
    assert len(open_ones) > 1
    for permutation in open_ones:
        assert np.array_equal(nearest_allowed(np.eye(n_cells)[permutation], outcomes, visible), permutation)


def sampled(n_cells: int) -> Iterator[np.ndarray]:
    """Permutations of which enough keep the masks above."""
    rng = np.random.default_rng(0)
    yield np.arange(n_cells)
    for _ in range(20_000):
        yield rng.permutation(n_cells)


def keeps(permutation: np.ndarray, outcomes: tuple[int, ...], visible: list[tuple[int, ...]]) -> bool:
    """Whether cells that a modality tells apart, and only those, are told apart by it after renumbering."""
    cells = np.stack(np.unravel_index(np.arange(len(permutation)), outcomes), axis=1)
    for nodes in visible:
        before, after = cells[:, list(nodes)], cells[permutation][:, list(nodes)]
        pairs = {(tuple(b), tuple(a)) for b, a in zip(before.tolist(), after.tolist(), strict=True)}
        if len(pairs) != len({b for b, _ in pairs}):
            return False
    return True


def test_shapes_that_differ_are_refused() -> None:
    r = np.ones((5, 12)) / 12
    with pytest.raises(ValueError, match=r"^new: expected \[sample, 12\] of the shape of previous, \(5, 12\)"):
        match_nodes(r, r[:4], OUTCOMES, [(0, 1, 2)])
    with pytest.raises(ValueError, match=r"^new: expected \[sample, 8\]"):
        match_nodes(r, r, (2, 2, 2), [(0, 1, 2)])
