"""The posterior of a fit: when there is one, what it rests on, and what files and summaries have of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from circle_like_fit import circle_like_fit
from test_equivalence_class import CHAIN, NAMED, chain_fit

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.posterior import (
    compared,
    declared_knowledge,
    graph_posterior,
    graph_search,
    node_likelihood,
    node_samples,
    plain_posterior,
    score_text,
    verdict,
)
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.posterior import posterior_of_scores
from causalpima.inference.graphs.scores import GraphPosterior, Score, family_scores
from causalpima.inference.reporting.arviz import to_datatree
from causalpima.inference.reporting.summary import summarise
from causalpima.inference.result import FitResult

NODES = ("N1", "N2", "N3")


def _with_knowledge(fit: FitArrays, **knowledge: Any) -> FitArrays:
    return replace(fit, attributes={"config": {"knowledge": knowledge}})


def test_a_named_fit_has_a_posterior_beside_its_class() -> None:
    graph = summarise(chain_fit(), 0.0)["graph"]
    found = graph["posterior"]
    assert found["cpdag"] == graph["equivalence_class"]["cpdag"] == CHAIN
    assert found["nodes"] == list(NODES)
    assert (found["score"], found["equivalent_sample_size"], found["method"]) == ("bic", None, "enumeration")
    assert found["n_samples"] == found["n_independent"] == 2000
    adjacency, edge = np.array(found["adjacency_probability"]), np.array(found["edge_probability"])
    np.testing.assert_allclose(adjacency, edge + edge.T)
    assert adjacency[0, 1] > 0.99
    assert adjacency[0, 2] < 0.5
    # Three chains are alike; nothing but the prior directs them.
    assert np.array(found["compelled_probability"]).max() < 0.1
    assert found["classes"][0]["cpdag"] == CHAIN
    assert sum(entry["probability"] for entry in found["classes"]) >= 0.95
    assert list(found["sensitivity"]["scores"]) == ["BIC", "BDeu 1", "BDeu 5", "BDeu 10"]
    assert found["sensitivity"]["changes"] == []
    assert found["knowledge"] == {"forbidden": [], "required": []}


def test_unnamed_fits_and_single_nodes_have_none() -> None:
    assert "posterior" not in summarise(chain_fit(identifiability=None), 0.0)["graph"]
    assert graph_posterior(chain_fit(identifiability=None)) is None
    assert graph_search(circle_like_fit(outcomes=(4,))) == {}
    assert graph_posterior(chain_fit(environment=np.ones(2000))) is None


def test_what_the_configuration_declares_is_honoured_in_class_and_posterior() -> None:
    fit = _with_knowledge(chain_fit(), designed=["N1"], forbid=["N3->N2"], tiers=[], require=[])
    found = graph_search(fit)
    directed = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert found["equivalence_class"]["cpdag"] == found["posterior"]["cpdag"] == directed
    assert found["posterior"]["compelled_probability"][0][1] > 0.99
    assert found["posterior"]["edge_probability"][1][0] == 0
    assert found["posterior"]["knowledge"]["forbidden"] == ["N2->N1", "N3->N1", "N3->N2"]
    known = declared_knowledge(fit.attributes, NODES)
    np.testing.assert_array_equal(known.forbidden, [[0, 0, 0], [1, 0, 0], [1, 1, 0]])


def test_five_nodes_have_a_posterior_by_their_counts() -> None:
    fit = circle_like_fit(n_samples=600, outcomes=(2,) * 5, latent=2)
    found = graph_search(replace(fit, identifiability=NAMED | {"identified_nodes": list(fit.graph.node_names)}))
    assert "equivalence_class" not in found
    assert np.shape(found["posterior"]["edge_probability"]) == (5, 5)
    assert 0 < found["posterior"]["diagnostics"]["information_share"] <= 1


def test_what_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.graphs.enumeration._MOST_WORK", 1e5)
    assert graph_search(chain_fit()) == {}


def test_sensitivity_is_left_out_before_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.findings.posterior.is_quick", lambda *arguments: len(arguments) == 2)
    assert graph_search(chain_fit())["posterior"]["sensitivity"] is None


def test_nodes_that_are_observed_count_as_they_are() -> None:
    """Labels of every node: the posterior is that of their counts, whatever the clusters say."""
    random = np.random.default_rng(3)
    labels = random.integers(2, size=(2000, 3))
    labels[:, 2] = np.where(random.random(2000) < 0.6, labels[:, 0], labels[:, 2])
    fit = replace(chain_fit(), node_labels=labels)
    found = graph_posterior(fit, score=Score("bdeu", 1.0))
    known = GraphKnowledge.none(NODES)
    samples = node_samples(fit)
    assert samples is not None
    scores = family_scores(labels, (2, 2, 2), Score("bdeu", 1.0))
    wanted = posterior_of_scores(scores, known, samples.evidence(Score("bdeu", 1.0)))
    assert found is not None
    np.testing.assert_allclose(found.edge_probability, wanted.edge_probability, atol=1e-8)
    assert found.adjacency_probability[0, 2] > 0.99
    assert found.adjacency_probability[0, 1] < 0.5


def test_labels_rule_cells_out_and_stand_alone_where_clusters_contradict_them() -> None:
    r = np.array([[0.5, 0.3, 0.2, 0.0], [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    labels = np.array([[-1, 1], [1, -1], [-1, -1]])
    found = node_likelihood(r, np.log(np.full((2, 2), 0.25)), labels)
    np.testing.assert_allclose(np.exp(found), np.array([[0, 1.2, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]), atol=1e-12)


def test_the_file_has_the_probabilities_labels_and_groups() -> None:
    fit, groups = chain_fit(), np.arange(2000) // 4 + 7
    labels = np.full((2000, 3), -1)
    fit = replace(fit, searched=graph_search(fit), groups=groups, node_labels=labels)
    tree = to_datatree(fit)
    for name in ("edge_probability", "adjacency_probability", "compelled_probability"):
        assert tree["variational"][name].dims == ("node_from", "node_to")
        np.testing.assert_array_equal(tree["variational"][name], np.array(fit.searched["posterior"][name]))  # type: ignore[index]
    assert tree["constant_data"]["node_label"].dims == ("sample", "node")
    np.testing.assert_array_equal(tree["constant_data"]["group"], groups - 7)
    assert "edge_probability" not in to_datatree(chain_fit())["variational"]


def _posterior(forward: float, backward: float, compelled: float, score: Score) -> GraphPosterior:
    edge, sure = np.array([[0, forward], [backward, 0]]), np.array([[0, compelled], [0, 0]])
    dags, weights = np.zeros((1, 2, 2)), np.ones(1)
    return GraphPosterior(("a", "b"), edge, sure, dags[0], (), dags, weights, None, score, "enumeration", 10, 10)


def test_verdicts_and_where_they_change() -> None:
    found = [
        _posterior(0.3, 0.1, 0.0, Score("bdeu", 5.0)),
        _posterior(0.8, 0.1, 0.7, Score()),
        _posterior(0.4, 0.3, 0.1, Score("bdeu", 1.0)),
    ]
    assert [verdict(posterior, 0, 1) for posterior in found] == ["none", "forward", "joined"]
    assert verdict(found[1], 1, 0) == "backward"
    side_by_side = compared(found)
    assert list(side_by_side["scores"]) == ["BIC", "BDeu 1", "BDeu 5"]
    assert side_by_side["changes"] == [["a", "b"]]
    assert compared(found[:1])["changes"] == []
    assert score_text(Score("bdeu", 2.5)) == "BDeu 2.5"


def test_plain_values_list_at_most_a_hundred_classes() -> None:
    found = graph_posterior(chain_fit())
    assert found is not None
    many = replace(found, classes=found.classes[:1] * 250)
    plain = plain_posterior(many, GraphKnowledge.none(NODES), (2, 2, 2))
    assert (len(plain["classes"]), plain["n_classes"]) == (100, 250)
    assert plain["sensitivity"] is None


def _result(fit: FitArrays) -> FitResult:
    return FitResult({}, summarise(fit, 0.0), [], fit, {}, "")


def test_the_python_call_has_every_score_and_prior() -> None:
    result = _result(chain_fit())
    plain = np.array(result.summary["graph"]["posterior"]["edge_probability"])
    np.testing.assert_allclose(result.graph_posterior().edge_probability, plain, atol=1e-9)
    assert result.graph_posterior("bdeu").score == Score("bdeu", 1.0)
    assert result.graph_posterior("bdeu", 5.0).score == Score("bdeu", 5.0)
    sparse = result.graph_posterior(edge_log_odds=-3.0)
    assert sparse.adjacency_probability[0, 2] < plain[0, 2] + plain[2, 0]
    known = GraphKnowledge.none(NODES)
    known.forbidden[0, 1] = True
    assert result.graph_posterior(knowledge=known).edge_probability[0, 1] == 0
    with pytest.raises(ValueError, match="equivalent_sample_size: expected it with BDeu, got the score bic"):
        result.graph_posterior("bic", 5.0)
    with pytest.raises(ValueError, match="equivalent_sample_size: expected a number above 0, got -1"):
        result.graph_posterior("bdeu", -1.0)


def test_unnamed_fits_say_what_would_name_them() -> None:
    with pytest.raises(ValueError, match=r"graph_posterior: expected a run all of whose nodes have a meaning.*name"):
        _result(chain_fit(identifiability=None)).graph_posterior()


def test_edges_of_the_trained_graph_have_their_probability() -> None:
    fit = chain_fit()
    fit = replace(fit, graph=replace(fit.graph, adjacency=np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])))
    ((_, _, numbers),) = _result(fit).graph().edges(data=True)
    assert set(numbers) == {"strength", "probability", "adjacency_probability"}
    assert numbers["adjacency_probability"] > 0.99 > numbers["probability"]
    ((_, _, numbers),) = _result(replace(fit, identifiability=None)).graph().edges(data=True)
    assert set(numbers) == {"strength"}
