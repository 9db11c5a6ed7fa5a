"""Distances of each graph of a run from the true class."""

from __future__ import annotations

from typing import Any

from inference.ablation.graph_distances import graph_distances

COLLIDER = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
CHAIN = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def summary(**graph: Any) -> dict[str, Any]:
    """Nodes b, c, a for the factors c, a, b: cause, cause and effect of a collider."""
    found = {
        "adjacency": [[0, 0, 0], [1, 0, 0], [1, 0, 0]],
        "equivalence_class": {"cpdag": [[0, 0, 0], [1, 0, 0], [1, 0, 0]]},
        "posthoc": None,
    }
    return {
        "nodes": {"b": 2, "c": 2, "a": 2},
        "graph": found | graph,
        "evaluation": {
            "factor_levels": {"c": ["0", "1"], "a": ["0", "1"], "b": ["0", "1"]},
            "assignment": {"b": "b", "c": "c", "a": "a"},
            "graph": {"true_cpdag": COLLIDER, "edge_strength": {"shd": 0}},
        },
    }


def test_nodes_stand_where_their_factors_are() -> None:
    assert graph_distances(summary()) == {"reported": 0, "trained": 0}


def test_every_graph_has_a_distance_of_its_own() -> None:
    # In the order b, c, a: the learner joins c - b - a without arrows, the linear model reverses c -> b.
    posthoc = {"cpdag": [[0, 1, 1], [1, 0, 0], [1, 0, 0]]}
    linear = {"adjacency": [[0, 1, 0], [0, 0, 0], [1, 0, 0]]}
    found = graph_distances(summary(posthoc=posthoc, linear_scm=linear, adjacency=[[0, 0, 0], [0, 0, 0], [1, 0, 0]]))
    assert found == {"reported": 0, "posthoc": 2, "linear_scm": 2, "trained": 2}


def test_nodes_without_a_meaning_have_none() -> None:
    assert graph_distances(summary(equivalence_class=None)) == {}


def test_without_a_truth_there_is_none() -> None:
    no_truth = summary()
    no_truth["evaluation"]["graph"] = None
    assert graph_distances(no_truth) == {}
    assert graph_distances({**summary(), "evaluation": None}) == {}


def test_more_factors_than_nodes_have_none() -> None:
    more = summary()
    more["evaluation"]["factor_levels"]["d"] = ["0", "1"]
    assert graph_distances(more) == {}


def test_a_graph_that_was_not_trained_has_none() -> None:
    free = summary()
    free["evaluation"]["graph"]["edge_strength"] = None
    assert graph_distances(free) == {"reported": 0}
    assert graph_distances(summary(equivalence_class={"cpdag": CHAIN}))["reported"] > 0
