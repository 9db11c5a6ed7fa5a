"""Number of equivalent labellings against brute force over all bijections."""

from __future__ import annotations

from itertools import permutations, product
from math import factorial, lgamma, log, log10, prod

import pytest
from brute_force import count_by_trying
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.inference.clusters.counting import count_labellings, equivalent_labellings, log10_labellings


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


MASKS = [
    # outcomes, nodes that each modality sees, labellings that remain
    ((2, 2), [{0, 1}], 3),
    ((2, 2, 2), [{0, 1, 2}], 840),
    ((2, 2, 2), [{0, 1}, {1, 2}, {0, 2}], 1),
    ((2, 2, 2), [{0, 1}, {2}, {1}], 2),
    ((2, 2, 2), [{0, 1}, {1, 2}], 4),
    ((2, 2, 2), [{0}, {1}, {2}], 1),
    ((2, 2, 2), [{0, 1}, {2}], 3),
]


@pytest.mark.parametrize(("outcomes", "visible", "expected"), MASKS)
def test_known_masks(outcomes: tuple[int, ...], visible: list[set[int]], expected: int) -> None:
    assert count_labellings(outcomes, visible) == expected == count_by_trying(outcomes, visible)


SMALL = st.sampled_from([(2, 2), (2, 3), (3, 2), (2, 4), (2, 2, 2)])


@st.composite
def problems(draw: st.DrawFn) -> tuple[tuple[int, ...], list[set[int]], set[int]]:
    """Outcomes, a mask under which every node is seen, labelled nodes."""
    outcomes = draw(SMALL)
    nodes = set(range(len(outcomes)))
    visible = draw(st.lists(st.sets(st.sampled_from(sorted(nodes)), min_size=1), min_size=1, max_size=4))
    unseen = nodes - set().union(*visible)
    return (
        outcomes,
        [*visible, *([unseen] if unseen else [])],
        draw(st.sets(st.sampled_from(sorted(nodes)), max_size=2)),
    )


@settings(deadline=None, max_examples=60)
@given(problems())
def test_any_mask_and_labels_equal_brute_force(problem: tuple[tuple[int, ...], list[set[int]], set[int]]) -> None:
    outcomes, visible, labelled = problem
    assert count_labellings(outcomes, visible, labelled=labelled) == count_by_trying(outcomes, visible, labelled)


@pytest.mark.parametrize("visible", [[{0, 1}, {1}], [{0}, {1}]])
def test_nine_cells_equal_brute_force(visible: list[set[int]]) -> None:
    assert count_labellings((3, 3), visible) == count_by_trying((3, 3), visible)


@given(problems())
def test_the_logarithm_is_that_of_the_count(problem: tuple[tuple[int, ...], list[set[int]], set[int]]) -> None:
    outcomes, visible, labelled = problem
    count = count_labellings(outcomes, visible, labelled=labelled)
    assert count is not None
    assert log10_labellings(outcomes, visible, labelled=labelled) == pytest.approx(log10(count), abs=1e-9)


@given(problems(), st.data())
def test_one_more_modality_or_label_leaves_no_more(
    problem: tuple[tuple[int, ...], list[set[int]], set[int]], data: st.DataObject
) -> None:
    outcomes, visible, labelled = problem
    more = data.draw(st.sets(st.sampled_from(range(len(outcomes))), min_size=1))
    before = count_labellings(outcomes, visible, labelled=labelled)
    with_modality = count_labellings(outcomes, [*visible, more], labelled=labelled)
    with_labels = count_labellings(outcomes, visible, labelled=labelled | more)
    assert before is not None
    assert with_modality is not None
    assert with_labels is not None
    assert max(with_modality, with_labels) <= before


@given(st.lists(st.integers(2, 4), min_size=1, max_size=4))
def test_one_modality_is_the_special_case(outcomes: list[int]) -> None:
    assert count_labellings(outcomes) == equivalent_labellings(outcomes)


def test_labels_of_all_nodes_leave_one() -> None:
    assert count_labellings((2, 3, 2, 2), labelled={0, 1, 2, 3}) == 1


def test_nodes_of_another_kind_are_not_exchanged() -> None:
    assert count_labellings((2, 2, 2), kinds="abb") == 3 * 840


def test_a_number_of_too_many_digits_is_none_at_once() -> None:
    assert count_labellings((2,) * 12) is None
    assert log10_labellings((2,) * 12) == pytest.approx((lgamma(2**12 + 1) - 12 * log(2) - lgamma(13)) / log(10))
    assert log10_labellings((2,) * 40, [{0, 1}, set(range(40))]) > 1e12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"visible": [{0}]}, "visible: expected every node in one set at least, got none with node 1"),
        ({"visible": []}, "visible: expected every node in one set at least, got none with node 0"),
        ({"visible": [{0, 1, 2}]}, "visible: expected positions of nodes, 0..1, got 2"),
        ({"labelled": [-1]}, "labelled: expected positions of nodes, 0..1, got -1"),
        ({"kinds": "a"}, "kinds: expected one per node, 2, got 1"),
    ],
)
def test_what_is_no_mask_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_labellings((2, 2), **arguments)  # type: ignore[arg-type]
