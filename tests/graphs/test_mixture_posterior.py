"""Posteriors over hidden nodes: seen nodes as their counts, errors modelled, information that overlap takes away."""

from __future__ import annotations

import numpy as np
import pytest
from test_hidden_scores import _vague

from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.hidden import deconvolve, group_weights, information_share
from causalpima.inference.graphs.posterior import NodeSamples, classes_posterior, mixture_posterior, posterior_of_scores
from causalpima.inference.graphs.scores import Score, family_scores, table_family_scores

_SCORES = [Score(), Score("bdeu", 1.0)]


def chain(n: int, n_nodes: int, error: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """N1 -> N2 -> ... of two outcomes, each read wrongly in a share of the samples: log p(reading | cell), readings."""
    random = np.random.default_rng(seed)
    nodes = np.zeros((n, n_nodes), dtype=int)
    nodes[:, 0] = random.random(n) < 0.5
    for node in range(1, n_nodes):
        nodes[:, node] = random.random(n) < np.where(nodes[:, node - 1] == 1, 0.75, 0.3)
    read = np.where(random.random((n, n_nodes)) < error, 1 - nodes, nodes)
    likelihood = np.ones((n, 1))
    for column in read.T:
        right = np.where(column[:, None] == np.arange(2), 1 - error, error)
        likelihood = (likelihood[:, :, None] * right[:, None, :]).reshape(n, -1)
    with np.errstate(divide="ignore"):
        return np.log(likelihood), read


def _samples(log_likelihood: np.ndarray, n_nodes: int, weights: np.ndarray | None = None) -> NodeSamples:
    return NodeSamples(tuple("abcdef"[:n_nodes]), (2,) * n_nodes, log_likelihood, weights)


def _nothing(n_nodes: int) -> GraphKnowledge:
    return GraphKnowledge.none(tuple("abcdef"[:n_nodes]))


@pytest.mark.parametrize("n_nodes", [3, 5])
@pytest.mark.parametrize("score", _SCORES)
def test_nodes_that_are_seen_have_the_posterior_of_their_counts(n_nodes: int, score: Score) -> None:
    certain, codes = chain(300, n_nodes, 0.0, 0)
    samples, known = _samples(certain, n_nodes), _nothing(n_nodes)
    found = mixture_posterior(samples, score, known)
    wanted = posterior_of_scores(family_scores(codes, (2,) * n_nodes, score), known, samples.evidence(score))
    np.testing.assert_allclose(found.edge_probability, wanted.edge_probability, atol=1e-7)
    assert found.log_marginal_likelihood == pytest.approx(wanted.log_marginal_likelihood, abs=1e-6)
    assert found.diagnostics.get("information_share", 1.0) == pytest.approx(1.0)


def test_a_search_that_is_done_gives_the_same() -> None:
    samples, known = _samples(_vague(0, 200, 8, 0.4), 3), _nothing(3)
    known.forbidden[2, 0] = True
    found = score_classes(samples.log_likelihood, samples.outcomes, knowledge=known)
    searched, alone = classes_posterior(found, samples, known), mixture_posterior(samples, Score(), known)
    np.testing.assert_allclose(searched.edge_probability, alone.edge_probability, atol=1e-9)
    assert searched.edge_probability[2, 0] == 0


def test_replicates_do_not_make_chance_an_edge() -> None:
    """60 specimens, each measured 20 times, whose two nodes are independent; counted singly they buy an edge.

    a     b

    The log-likelihood ratio of the edge is half a chi-square of the specimens, times 20 where all are counted singly.
    It has to beat 1/2 log n less log 2 (two graphs have the edge): 10 % and 59 %, with 3 standard errors of 100.
    """
    random, known, joined = np.random.default_rng(0), _nothing(2), []
    weights = group_weights(np.repeat(np.arange(60), 20))
    for _ in range(100):
        log_l = _seen(np.repeat(random.integers(4, size=60), 20))
        found = [mixture_posterior(_samples(log_l, 2, weight), Score(), known) for weight in (weights, None)]
        joined.append([posterior.adjacency_probability[0, 1] > 0.5 for posterior in found])
    assert np.mean(joined, axis=0)[0] < 0.19
    assert np.mean(joined, axis=0)[1] > 0.44


@pytest.mark.parametrize("score", _SCORES)
def test_replicates_count_as_their_specimens(score: Score) -> None:
    cells = np.random.default_rng(0).integers(4, size=60)
    weights = group_weights(np.repeat(np.arange(60), 20))
    weighed = mixture_posterior(_samples(_seen(np.repeat(cells, 20)), 2, weights), score, _nothing(2))
    once = mixture_posterior(_samples(_seen(cells), 2), score, _nothing(2))
    np.testing.assert_allclose(weighed.edge_probability, once.edge_probability, atol=1e-6)
    assert (weighed.n_samples, weighed.n_independent) == (1200, 60)


def _seen(cells: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.eye(4)[cells])


def test_counts_behind_clusters_are_plain_counts_where_clusters_are_clean() -> None:
    certain, codes = chain(300, 3, 0.0, 1)
    found = deconvolve(certain, (2, 2, 2))
    np.testing.assert_allclose(found.counts.reshape(-1), np.bincount(codes @ [4, 2, 1], minlength=8), atol=1e-9)
    assert found.information_share == pytest.approx(1.0)


def test_information_of_one_node_read_wrongly() -> None:
    """p = 1/2, error e: the reading has variance 1/4, its mean moves by (1 - 2 e) with p: the share is (1 - 2 e)^2."""
    log_l = np.log(np.where(np.arange(1000)[:, None] % 2 == np.arange(2), 0.9, 0.1))
    assert information_share(log_l, np.array([0.5, 0.5])) == pytest.approx(0.64)
    assert information_share(log_l, np.array([0.5, 0.5]), np.full(1000, 0.1)) == pytest.approx(0.64)


def test_counts_behind_clusters_agree_with_em_for_every_graph_where_both_are_possible() -> None:
    """Nodes read wrongly in 5 %, and in 10 %: what is sure by one is sure by the other.

    a -> b -> c
    """
    known, agree = _nothing(3), []
    for error, seed in ((0.05, 0), (0.05, 1), (0.1, 2), (0.1, 3)):
        log_l, _ = chain(4000, 3, error, seed)
        whole = mixture_posterior(_samples(log_l, 3), Score(), known)
        counts = deconvolve(log_l, (2, 2, 2)).counts
        by_counts = posterior_of_scores(table_family_scores(counts), known, _samples(log_l, 3).evidence(Score()))
        agree.append(np.abs(whole.adjacency_probability - by_counts.adjacency_probability).max())
        assert whole.adjacency_probability[0, 1] > 0.95
        assert by_counts.adjacency_probability[0, 1] > 0.95
        assert by_counts.adjacency_probability[0, 2] < 0.5
    assert np.mean(agree) < 0.1


def test_no_evidence_is_told_of_counts_with_less_than_all_information() -> None:
    log_l, _ = chain(400, 5, 0.1, 0)
    found = mixture_posterior(_samples(log_l, 5), Score("bdeu", 1.0), _nothing(5))
    assert found.log_marginal_likelihood is None
    assert 0 < found.diagnostics["information_share"] < 0.5


def test_weights_of_groups() -> None:
    assert group_weights(None) is None
    found = group_weights(np.array([7, 7, 3, 7]))
    assert found is not None
    assert found.tolist() == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])
