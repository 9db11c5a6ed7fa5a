"""Arrows that were declared are told from those that the data found, wherever a class is shown."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.findings.graph import (
    arrow_notes,
    class_sentence,
    declared_arrows,
    declared_sentence,
    posterior_sentence,
)
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, cpdag, mpdag
from causalpima.inference.reporting.headline import graph_clause

NODES = ("alloy", "treatment")
KNOWN = {"forbidden": ["alloy->treatment"], "required": []}
SUMMARY = {
    "identifiability": {"is_named": True},
    "graph": {
        "node_names": list(NODES),
        "equivalence_class": {"cpdag": [[0, 0], [1, 0]], "node_names": list(NODES), "gap_nats": 16.8},
        "posterior": {
            "nodes": list(NODES),
            "score": "bic",
            "equivalent_sample_size": None,
            "knowledge": KNOWN,
            "adjacency_probability": [[0.0, 1.0], [1.0, 0.0]],
            "classes": [{"cpdag": [[0, 0], [1, 0]], "probability": 1.0}],
        },
    },
}


@pytest.mark.parametrize("seed", range(3))
def test_declared_arrows_are_those_that_the_class_without_knowledge_has_not(seed: int) -> None:
    """All graphs of four nodes, each with one of its edges known: against the class of the same graph."""
    rng = np.random.default_rng(seed)
    for dag in all_dags(4):
        edges = np.argwhere(dag)
        if not len(edges):
            continue
        i, j = edges[rng.integers(len(edges))]
        required = np.zeros((4, 4), dtype=bool)
        required[i, j] = True
        known = GraphKnowledge(("a", "b", "c", "d"), np.zeros((4, 4), dtype=bool), required)
        graph, free = mpdag(dag, known).astype(bool), cpdag(dag).astype(bool)
        expected = graph & ~graph.T & ~(free & ~free.T)
        np.testing.assert_array_equal(declared_arrows(graph), expected)


def test_the_class_of_a_dag_has_no_declared_arrow() -> None:
    assert not any(declared_arrows(cpdag(dag)).any() for dag in all_dags(4))


def test_notes_say_which_arrows_are_found_and_which_declared() -> None:
    collider = [[0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    names = ("a", "b", "c", "d")
    assert arrow_notes(collider, names) == [
        "an arrow: directed by the class, assuming no hidden common cause and no selection"
    ]
    assert arrow_notes([[0, 1], [1, 0]], names[:2]) == []
    assert arrow_notes([[0, 0], [1, 0]], NODES) == [
        "directed by what was declared, not by the data: treatment -> alloy"
    ]


def test_what_was_declared_is_told() -> None:
    assert declared_sentence({"knowledge": KNOWN}) == "Declared: not there alloy->treatment."
    assert declared_sentence({"knowledge": {"forbidden": [], "required": []}}) == ""


def test_a_graph_that_was_given_is_told_before_what_was_searched() -> None:
    given = {**SUMMARY, "graph": {**SUMMARY["graph"], "given": ["treatment->alloy"]}}  # type: ignore[dict-item]
    said = class_sentence(given)
    assert said.startswith("p(N) has the graph that was given: treatment->alloy. Searched without regard to it: Equiv")
    none = {**SUMMARY, "graph": {**SUMMARY["graph"], "given": []}}  # type: ignore[dict-item]
    assert "that was given: no edge." in class_sentence(none)
    assert "given" not in class_sentence(SUMMARY)


def test_table_and_page_do_not_call_a_declared_direction_a_finding() -> None:
    found = class_sentence(SUMMARY)
    assert "not by the data: treatment -> alloy" in found
    assert "directed by the class" not in found
    assert posterior_sentence(SUMMARY) == "Probability of this class among all that agree with what was declared: 1.00."
    clause = graph_clause(SUMMARY)
    assert "among all classes of graphs that agree with what was declared (BIC)" in clause
    assert clause.endswith("the direction of treatment → alloy was declared, the data leave it open")
