"""Which graphs a question is answered for, by what the summary of a run holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linear_source import CPDAG, NODES, summary_of

from causalpima.inference.analyses.scenarios import drawn_graph, graph_set, no_graph

COLLIDER = [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
CHAIN = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def class_of(cpdag: list[list[int]], near: list[dict[str, Any]]) -> dict[str, Any]:
    found = {"cpdag": cpdag, "node_names": list(NODES), "gap_nats": 1.0, "near": near}
    return summary_of(graph={"node_names": list(NODES), "equivalence_class": found})


def test_of_a_class_all_members_count_alike() -> None:
    found = graph_set(class_of(CPDAG, []))
    assert found.basis == "class"
    assert len(found.dags) == 3
    np.testing.assert_allclose(found.weights, 1 / 3)
    assert found.class_of.tolist() == [0, 0, 0]


def test_classes_that_are_not_decided_against_count_by_their_score() -> None:
    found = graph_set(class_of(CPDAG, [{"cpdag": COLLIDER, "behind_nats": np.log(2.0)}]))
    np.testing.assert_allclose(found.weights, np.array([2, 2, 2, 1]) / 7)  # every graph has the same prior
    assert found.class_of.tolist() == [0, 0, 0, 1]
    assert found.dags[3].tolist() == COLLIDER
    assert "4 graphs of the best 2 equivalence classes" in found.sentence


def test_a_posterior_comes_before_the_best_class() -> None:
    summary = class_of(CPDAG, [])
    # hard after heat is known: the class is alloy - heat -> hard with two graphs
    known = [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    classes = [{"cpdag": known, "probability": 0.8}, {"cpdag": COLLIDER, "probability": 0.16}]
    summary["graph"]["posterior"] = {"classes": classes, "knowledge": {"forbidden": ["hard->heat"], "required": []}}
    found = graph_set(summary)
    assert found.basis == "posterior"
    np.testing.assert_allclose(found.weights, np.array([0.4, 0.4, 0.16]) / 0.96)
    assert "3 graphs in 2 equivalence classes that carry 96.0%" in found.sentence
    assert "given what was declared" in found.sentence


def test_interventions_come_first_and_leave_open_what_they_leave_open() -> None:
    details: dict[str, Any] = {
        "targets": {"set alloy": "alloy"},
        "known_targets": ["set alloy"],
        "graph": CHAIN,
        "graph_gap": 12.0,
        "n_searched": {"graphs": 25},
        "n_remaining": 1,
        "edge_probability": [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
    }
    labelling = {"source": "environments", "named_nodes": list(NODES), "details": details}
    found = graph_set(summary_of(labelling=labelling))
    assert found.basis == "interventions"
    assert found.dags.tolist() == [CHAIN]
    details["edge_probability"] = [[0, 1, 0], [0, 0, 0.6], [0, 0.4, 0]]
    found = graph_set(summary_of(labelling=labelling))
    assert sorted(dag.tolist() for dag in found.dags) == sorted([CHAIN, COLLIDER])
    assert "2 ways" in found.sentence


def test_a_graph_that_was_given_is_the_graph() -> None:
    found = graph_set(class_of(CPDAG, []), np.array(COLLIDER))
    assert (found.basis, found.dags.tolist()) == ("given", [COLLIDER])


def test_without_a_graph_nothing_is_said() -> None:
    with pytest.raises(ValueError, match="graph: expected a run with a searched graph, got 3 nodes without one"):
        graph_set(summary_of(graph={"node_names": list(NODES)}))
    assert graph_set(summary_of(graph={"node_names": ["phase"]})).dags.tolist() == [[[0]]]
    assert no_graph(3).dags.tolist() == [[[0, 1, 1], [0, 0, 1], [0, 0, 0]]]
    assert drawn_graph(np.array(CHAIN), NODES) == "alloy -> heat, heat -> hard"
    assert drawn_graph(np.zeros((3, 3)), NODES) == "no edge"
