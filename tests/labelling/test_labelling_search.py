"""All labellings that differ in meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from math import prod

import numpy as np
import pytest
from numpy.typing import ArrayLike

from causalpima.inference.clusters.counting import count_labellings
from causalpima.inference.clusters.labels import (
    as_tables,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
    rename_towards,
    with_nodes,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def meaning(labelling: ArrayLike, outcomes: Sequence[int], kinds: Sequence[object]) -> frozenset[object]:
    """The same for labellings that differ by names alone: the partitions of the clusters by node, as a multiset."""
    nodes = np.array(np.unravel_index(np.asarray(labelling), tuple(outcomes)))
    partitions = [
        (kind, frozenset(frozenset(np.flatnonzero(codes == outcome)) for outcome in range(size)))
        for codes, size, kind in zip(nodes, outcomes, kinds, strict=True)
    ]
    return frozenset((part, partitions.count(part)) for part in partitions)


@pytest.mark.parametrize("outcomes", [(2,), (5,), (2, 2), (2, 3), (3, 2)], ids=str)
@pytest.mark.parametrize("named", [False, True])
def test_one_labelling_per_meaning(outcomes: tuple[int, ...], named: bool) -> None:
    kinds = list(range(len(outcomes))) if named else [None] * len(outcomes)
    found = enumerate_labellings(outcomes, kinds)
    every = {meaning(labelling, outcomes, kinds) for labelling in permutations(range(prod(outcomes)))}
    assert {meaning(labelling, outcomes, kinds) for labelling in found} == every
    assert len(found) == len(every) == count_labellings(outcomes, kinds=kinds)


@pytest.mark.parametrize("outcomes", [(2, 2, 2), (2, 4), (3, 3)], ids=str)
def test_as_many_as_are_counted_all_different(outcomes: tuple[int, ...]) -> None:
    kinds = [None] * len(outcomes)
    found = enumerate_labellings(outcomes)
    assert len({meaning(labelling, outcomes, kinds) for labelling in found}) == len(found) == count_labellings(outcomes)


def test_some_nodes_of_a_kind() -> None:
    assert len(enumerate_labellings((2, 2, 2), ("hue", None, None))) == count_labellings((2, 2, 2), kinds=("h", 0, 0))


def test_too_many_are_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"^nodes: expected at most 100000 labellings .* about 1e11 .* name the clust"):
        enumerate_labellings((2, 2, 2, 2))


def test_tables_are_in_the_order_of_cells(rng: np.random.Generator) -> None:
    outcomes, mass = (2, 3), rng.random((4, 6))
    labellings = enumerate_labellings(outcomes)
    found = as_tables(mass, labellings, outcomes)
    for k, environment, cluster in product(range(len(labellings)), range(4), range(6)):
        cell = np.unravel_index(labellings[k, cluster], outcomes)
        assert found[(k, environment, *cell)] == mass[environment, cluster]


def test_outcomes_of_nodes_there_and_back(rng: np.random.Generator) -> None:
    labellings = np.array([rng.permutation(12) for _ in range(5)])
    assert np.array_equal(with_nodes(node_outcomes(labellings, (2, 3, 2)), (2, 3, 2)), labellings)


def test_partitions_do_not_depend_on_names_of_outcomes() -> None:
    assert partition_codes(np.array([2, 2, 0, 1, 0])).tolist() == [0, 0, 1, 2, 1]
    assert partition_codes(np.array([[1, 0], [0, 1], [0, 0]])).tolist() == [[0, 1], [0, 1], [0, 0]]


def test_renaming_keeps_the_meaning_and_agrees_most(rng: np.random.Generator) -> None:
    outcomes, mass = (2, 3), rng.random(6)
    labelling, wanted = rng.permutation(6), rng.permutation(6)
    found = rename_towards(labelling, wanted, outcomes, mass)
    assert meaning(found, outcomes, "ab") == meaning(labelling, outcomes, "ab")

    def agreement(entry: np.ndarray) -> float:
        return float((mass * (node_outcomes(entry, outcomes) == node_outcomes(wanted, outcomes))).sum())

    codes = node_outcomes(labelling, outcomes)
    renamed = (
        with_nodes(np.array([np.array(first)[codes[0]], np.array(second)[codes[1]]]), outcomes)
        for first, second in product(permutations(range(2)), permutations(range(3)))
    )
    assert agreement(found) == pytest.approx(max(map(agreement, renamed)))
