"""What environments told, under names: nodes exchanged, outcomes renumbered, nodes torn apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalpima.inference.clusters.names import CellNames, order_of_nodes, under_names

JOINT = np.random.default_rng(0).dirichlet(np.ones(12)).reshape(2, 2, 3)


def before(**changes: Any) -> dict[str, Any]:
    """A -> B and A -> C, with interventions upon A and C."""
    details = {
        "graph": [[0, 1, 1], [0, 0, 0], [0, 0, 0]],
        "edge_probability": [[0.0, 0.9, 0.8], [0.1, 0.0, 0.2], [0.0, 0.3, 0.0]],
        "targets": {"do_A": "A", "do_C": "C"},
        "known_targets": ["do_A"],
        "samples": {"observational": 5, "do_A": 3, "do_C": 2},
        "graph_gap": 7.0,
        "labelling_gap": 3.0,
        "n_searched": {"labellings": 4, "graphs": 25, "targets": 1},
        "n_remaining": 2,
    }
    told = {"source": "environments", "named_nodes": ["A", "C"], "details": details, "joint": JOINT.tolist()}
    return told | {"environment_joint": {"do_A": (JOINT**2).tolist(), "do_C": (JOINT**3).tolist()}} | changes


def names(permutation: np.ndarray, *named: str) -> CellNames:
    outcomes = (("x", "y"), ("0", "1"), ("0", "1", "2"))
    return CellNames(permutation, {"heat": 2, "grade": 2, "C": 3}, outcomes, named)


def moved() -> np.ndarray:
    """Old cells to new ones: nodes A and B exchanged, the outcomes of B flipped."""
    a, b, c = np.unravel_index(np.arange(12), (2, 2, 3))
    return np.ravel_multi_index((1 - b, a, c), (2, 2, 3))


def test_nodes_are_followed() -> None:
    assert order_of_nodes(moved(), (2, 2, 3)) == (1, 0, 2)
    assert order_of_nodes(np.arange(12), (2, 2, 3)) == (0, 1, 2)
    torn = np.arange(12)
    torn[[0, 4]] = torn[[4, 0]]
    assert order_of_nodes(torn, (2, 2, 3)) is None


def test_graph_and_joint_follow_the_nodes() -> None:
    found = under_names(before(), names(moved(), "heat", "grade", "C"), ("A", "B", "C"))
    assert found.source == "names"
    assert found.named_nodes == ["heat", "grade", "C"]
    np.testing.assert_array_equal(found.joint, JOINT.transpose(1, 0, 2)[::-1])
    np.testing.assert_array_equal(found.environment_joint["do_A"], (JOINT**2).transpose(1, 0, 2)[::-1])
    np.testing.assert_array_equal(found.environment_joint["do_C"], (JOINT**3).transpose(1, 0, 2)[::-1])
    details = found.details
    assert details["graph"] == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]
    assert details["edge_probability"] == [[0.0, 0.1, 0.2], [0.9, 0.0, 0.8], [0.3, 0.0, 0.0]]
    assert details["targets"] == {"do_A": "grade", "do_C": "C"}
    assert details["n_remaining"] == 1
    assert details["clusters"] == np.argsort(moved()).tolist()


def test_the_class_of_soft_interventions_follows_the_nodes() -> None:
    """Without a number of labellings: these name nothing."""
    soft = before()
    del soft["details"]["n_remaining"], soft["details"]["labelling_gap"]
    soft["details"] |= {"kind": "soft", "class": [[0, 1, 1], [1, 0, 0], [0, 0, 0]]}
    details = under_names(soft, names(moved(), "heat"), ("A", "B", "C")).details
    assert details["class"] == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert details["kind"] == "soft"
    assert "n_remaining" not in details


def test_nodes_that_environments_named_keep_their_meaning() -> None:
    found = under_names(before(), names(np.arange(12), "heat"), ("A", "B", "C"))
    assert found.named_nodes == ["heat", "C"]
    assert found.details["n_remaining"] == 2


def test_names_that_tear_nodes_apart_keep_the_distribution_alone() -> None:
    torn = np.arange(12)
    torn[[0, 4]] = torn[[4, 0]]
    found = under_names(before(), names(torn, "heat"), ("A", "B", "C"))
    assert set(found.details) == {"clusters"}
    assert found.named_nodes == ("heat",)
    assert found.joint is not None
    assert found.joint.reshape(-1)[[4, 0, 1]] == pytest.approx(JOINT.reshape(-1)[[0, 4, 1]])
    again = under_names(found.to_plain(), names(np.arange(12), "heat"), ("heat", "grade", "C"))
    np.testing.assert_array_equal(again.joint, found.joint)


def test_without_environments_names_stand_alone() -> None:
    for earlier in (None, {"source": "mask", "named_nodes": ["A"], "details": {}}):
        found = under_names(earlier, names(moved(), "heat"), ("A", "B", "C"))
        assert found.joint is None
        assert found.to_plain() == names(moved(), "heat").labelling().to_plain()
