"""Distances between equivalence classes: by hand, by counting pairs, and against gadjid."""

from __future__ import annotations

import numpy as np
import pytest
from test_cpdag import graph, random_dag

from causalpima.inference.graphs.dags import GraphScores, compare, cpdag, permute_nodes, structural_hamming_distance


def by_pairs(found: np.ndarray, true: np.ndarray) -> int:
    n = len(found)
    return sum((found[i, j], found[j, i]) != (true[i, j], true[j, i]) for i in range(n) for j in range(i))


def test_a_graph_is_at_no_distance_from_itself() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = cpdag(random_dag(rng, 5))
        scores = compare(found, found)
        assert scores.is_exact
        assert (scores.shd, scores.skeleton_f1, scores.v_structure_f1) == (0, 1.0, 1.0)
        assert scores.orientation in (1.0, None)


def test_collider_against_chain_by_hand() -> None:
    #  true: 0 -> 1 <- 2    found: 0 - 1 - 2, and 0 - 1, 0 -> 2 as a DAG would say
    true, chain = cpdag(graph(3, (0, 1), (2, 1))), cpdag(graph(3, (0, 1), (1, 2)))
    assert compare(chain, true) == GraphScores(2, 1.0, 0.0, 0.0)
    assert compare(true, chain) == GraphScores(2, 1.0, 0.0, None)
    assert compare(cpdag(graph(3, (0, 1), (0, 2))), true) == GraphScores(3, 0.5, 0.0, 0.0)
    assert compare(graph(3, (1, 0), (2, 1)), true).orientation == 0.5


def test_distance_counts_pairs() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        found, true = cpdag(random_dag(rng, 6)), cpdag(random_dag(rng, 6))
        assert structural_hamming_distance(found, true) == by_pairs(found, true)


def test_distance_agrees_with_gadjid() -> None:
    gadjid = pytest.importorskip("gadjid")
    rng = np.random.default_rng(2)

    def encoded(found: np.ndarray) -> np.ndarray:  # 1: from row to column; 2, in one triangle: undirected
        both = (found == 1) & (found.T == 1)
        return ((found == 1) & ~both).astype(np.int8) + 2 * np.triu(both).astype(np.int8)

    for _ in range(50):
        found, true = cpdag(random_dag(rng, 7)), cpdag(random_dag(rng, 7))
        assert structural_hamming_distance(found, true) == gadjid.shd(encoded(true), encoded(found))[1]


def test_nodes_are_put_in_another_order() -> None:
    moved = permute_nodes(graph(3, (0, 1), (1, 2)), (2, 0, 1))
    np.testing.assert_array_equal(moved, graph(3, (1, 2), (2, 0)))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"found: expected shape \(3, 3\)"):
        structural_hamming_distance(np.zeros((2, 2)), np.zeros((3, 3)))
