"""Learners of causal-learn: known graphs of many samples, knowledge, nodes that do not vary, marks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.learners import _read, check_learner, learn_graph

NODES = ("A", "B", "C", "D")
# A -> C <- B, C -> D: every arrow is compelled.
EDGES = np.zeros((4, 4), dtype=int)
EDGES[[0, 1, 2], [2, 2, 3]] = 1


def outcomes() -> np.ndarray:
    """10 000 samples in exactly the shares of p(N), so that no test errs by chance; C is A or B, flipped by a tenth."""
    cells = np.array(list(itertools.product((0, 1), repeat=4)))
    first, second, third, fourth = cells.T
    share = 0.25 * np.where(third == (first | second), 0.9, 0.1) * np.where(fourth == third, 0.9, 0.1)
    return np.repeat(cells, np.round(10_000 * share).astype(int), axis=0)


def known(*forbidden: tuple[int, int], required: tuple[tuple[int, int], ...] = ()) -> GraphKnowledge:
    none = GraphKnowledge.none(NODES)
    for pairs, matrix in ((forbidden, none.forbidden), (required, none.required)):
        for pair in pairs:
            matrix[pair] = True
    return none


@pytest.mark.parametrize("kind", ["posthoc:pc", "posthoc:ges"])
def test_a_collider_with_an_effect_is_found(kind: str) -> None:
    pytest.importorskip("causallearn")
    np.testing.assert_array_equal(learn_graph(kind, outcomes(), known()).graph, EDGES)


@pytest.mark.parametrize("kind", ["posthoc:pc", "posthoc:ges"])
def test_nodes_that_do_not_vary_have_no_edge(kind: str) -> None:
    pytest.importorskip("causallearn")
    values = outcomes()
    values[:, 2] = 1
    expected = np.zeros((4, 4), dtype=int)
    expected[[0, 1], 3] = 1  # a collider without the node in between
    np.testing.assert_array_equal(learn_graph(kind, values, known()).graph, expected)
    assert not learn_graph(kind, np.zeros((10, 4), dtype=int), known()).graph.any()


def test_ges_tells_two_nodes_that_are_joined_from_two_that_are_not() -> None:
    pytest.importorskip("causallearn")
    for columns, expected in (([2, 3], [[0, 1], [1, 0]]), ([0, 1], [[0, 0], [0, 0]])):
        found = learn_graph("posthoc:ges", outcomes()[:, columns], GraphKnowledge.none(("A", "B")))
        np.testing.assert_array_equal(found.graph, expected)


def test_pc_keeps_to_edges_that_are_not_there() -> None:
    pytest.importorskip("causallearn")
    found = learn_graph("posthoc:pc", outcomes()[:, [2, 3]], GraphKnowledge(("C", "D"), *_two((1, 0))))
    np.testing.assert_array_equal(found.graph, [[0, 1], [0, 0]])
    both = learn_graph("posthoc:pc", outcomes()[:, [2, 3]], GraphKnowledge(("C", "D"), *_two((1, 0), (0, 1))))
    assert not both.graph.any()


def _two(*forbidden: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    matrix = np.zeros((2, 2), dtype=bool)
    for pair in forbidden:
        matrix[pair] = True
    return matrix, np.zeros((2, 2), dtype=bool)


def test_lingam_directs_linear_effects_of_uniform_noise() -> None:
    pytest.importorskip("causallearn")
    rng = np.random.default_rng(1)
    noise = rng.uniform(-1, 1, size=(2000, 3))
    first = noise[:, 0]
    second = 2 * first + noise[:, 1]
    third = second - first + noise[:, 2]
    found = learn_graph(
        "posthoc:lingam", np.stack([third, second, first], axis=1), GraphKnowledge.none(("C", "B", "A"))
    )
    np.testing.assert_array_equal(found.graph, [[0, 0, 0], [1, 0, 0], [1, 1, 0]])


def test_marks_become_arrows_lines_and_conflicts() -> None:
    """Entry [j, i] is the mark at j: 0 -> 1, 1 -- 2, and two heads between 0 and 2."""
    found = _read(np.array([[0, -1, 1], [1, 0, -1], [1, -1, 0]]), "")
    np.testing.assert_array_equal(found.graph, [[0, 1, 1], [0, 0, 1], [1, 1, 0]])
    assert found.conflicts == ((0, 2),)


@pytest.mark.parametrize(
    ("kind", "knowledge", "match"),
    [
        ("posthoc:pc", known(required=((0, 1),)), "no edges known to be there with posthoc:pc, got A->B"),
        ("posthoc:ges", known((2, 0)), "no knowledge of the graph with posthoc:ges, got C->A"),
        ("posthoc:lingam", known((2, 0)), "no knowledge of the graph with posthoc:lingam, got C->A"),
    ],
)
def test_what_a_learner_cannot_do_is_refused(kind: str, knowledge: GraphKnowledge, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        check_learner(kind, knowledge)
    check_learner("posthoc:pc", known((2, 0)))
