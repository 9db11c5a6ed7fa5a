"""Distances of each graph of a run from the true class."""

from __future__ import annotations

from typing import Any

from causalpima.inference.ablation.records import graph_distances

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


def numbered(assignment: dict[str, str], variables: dict[str, str]) -> dict[str, Any]:
    """The same with nodes that do not bear the names of factors."""
    found = summary() | {"nodes": {"N1": 2, "N2": 2, "N3": 2}, "labelling": {"details": {"variables": variables}}}
    found["evaluation"]["assignment"] = assignment
    return found


def test_nodes_stand_at_the_factors_of_their_labels_and_not_where_the_truth_would_have_them() -> None:
    variables = {"N1": "b", "N2": "c", "N3": "a"}
    assert graph_distances(numbered({"b": "N1", "c": "N2", "a": "N3"}, variables))["reported"] == 0
    # Clusters that bear exchanged names: the best assignment would put a and b right, the names do not.
    exchanged = {"N1": "a", "N2": "c", "N3": "b"}
    assert graph_distances(numbered({"b": "N1", "c": "N2", "a": "N3"}, exchanged))["reported"] == 3


def test_nodes_without_names_of_factors_stand_where_they_are_assigned() -> None:
    """`assignment` has the node of every factor, as evaluation writes it."""
    assert graph_distances(numbered({"c": "N2", "a": "N3", "b": "N1"}, {})) == {"reported": 0, "trained": 0}
    assert graph_distances(numbered({"c": "N1", "a": "N3", "b": "N2"}, {}))["reported"] == 3
    assert graph_distances(numbered({"c": "N1", "a": "N3"}, {})) == {}


def test_of_many_nodes_the_posterior_is_what_the_run_reports() -> None:
    many = summary(equivalence_class=None, posterior={"cpdag": [[0, 0, 0], [1, 0, 0], [1, 0, 0]]})
    assert graph_distances(many) == {"reported": 0, "trained": 0}


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
