from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

import numpy as np
import pytest

from causalpima.inference.graphs.dags import GraphKnowledge, class_members, cpdag
from causalpima.inference.graphs.enumeration import Evidence, enumerated_posterior
from causalpima.inference.graphs.posterior import Sampling, exact_posterior, large_posterior, sampled_posterior
from causalpima.inference.graphs.scores import GraphPosterior, Score, best_dag, dag_scores, family_scores

EVIDENCE = Evidence(Score("bdeu", 1.0), 300, 300)


def codes(n_nodes: int, n_samples: int = 300) -> np.ndarray:
    """A collider 0 -> 2 <- 1 and a chain 2 -> 3 -> 4 -> ..., errors of 20 %."""
    generator = np.random.default_rng(0)
    found = generator.integers(0, 2, size=(n_samples, n_nodes))
    for node in range(2, n_nodes):
        cause = found[:, 0] & found[:, 1] if node == 2 else found[:, node - 1]
        found[:, node] = cause ^ (generator.random(n_samples) < 0.2)
    return found


def known(n_nodes: int, something: bool) -> GraphKnowledge:
    """Nothing, or that 3 -> 2 and not 0 -> 1."""
    knowledge = GraphKnowledge.none(tuple(f"N{k}" for k in range(n_nodes)))
    knowledge.required[3, 2] = knowledge.forbidden[0, 1] = something
    return knowledge


@pytest.mark.parametrize(
    ("way", "n_draws", "tolerance", "something", "log_odds"),
    [
        *((exact_posterior, 4000, 0.03, something, odds) for something in (False, True) for odds in (0.0, -1.0)),
        (sampled_posterior, 1200, 0.09, False, 0.0),
        (sampled_posterior, 1200, 0.09, True, -1.0),
    ],
)
def test_it_is_what_enumeration_finds(
    way: Callable[..., GraphPosterior], n_draws: int, tolerance: float, something: bool, log_odds: float
) -> None:
    knowledge = known(5, something)
    scores = family_scores(codes(5), [2] * 5, EVIDENCE.score, knowledge)
    oracle = enumerated_posterior(scores, knowledge, EVIDENCE, log_odds)
    found = way(scores, knowledge, EVIDENCE, log_odds, Sampling(n_draws))
    exact = way is exact_posterior
    np.testing.assert_allclose(found.edge_probability, oracle.edge_probability, atol=1e-9 if exact else tolerance)
    np.testing.assert_allclose(found.compelled_probability, oracle.compelled_probability, atol=tolerance)
    np.testing.assert_array_equal(found.best, oracle.best)
    assert found.classes[0].probability == pytest.approx(oracle.classes[0].probability, abs=tolerance)
    assert sum(one.probability for one in found.classes) >= 0.95
    assert found.weights.sum() == pytest.approx(1.0)
    if exact:
        assert found.log_marginal_likelihood == pytest.approx(oracle.log_marginal_likelihood, abs=1e-9)
    assert found.nodes == knowledge.nodes


def test_more_nodes_than_can_be_listed() -> None:
    knowledge = known(8, False)
    scores = family_scores(codes(8, 2000), [2] * 8, Score(), knowledge)
    found = large_posterior(scores, knowledge, Evidence(Score(), 2000, 2000), sampling=Sampling(500))
    assert found.method == "exact sums"
    assert found.log_marginal_likelihood is not None
    members = class_members(found.classes[0].graph)
    probability = np.exp(dag_scores(scores, members) - found.log_marginal_likelihood - log(783702329343)).sum()
    assert found.classes[0].probability == pytest.approx(probability, abs=4.5 * sqrt(probability / 500))
    rival = np.exp(best_dag(scores)[1] - found.log_marginal_likelihood - log(783702329343))
    assert probability > rival * len(class_members(cpdag(best_dag(scores)[0])))
    assert found.adjacency_probability[0, 2] > 0.95
    assert found.diagnostics["rounding"] < 1e-9
    np.testing.assert_allclose(np.tensordot(found.weights, found.dags, 1), found.edge_probability, atol=0.12)


def test_chains_say_how_far_they_agree() -> None:
    knowledge = known(6, False)
    found = sampled_posterior(family_scores(codes(6), [2] * 6), knowledge, EVIDENCE, sampling=Sampling(1200, 2, 3))
    assert found.method == "partition mcmc"
    assert found.log_marginal_likelihood is None
    assert found.diagnostics["chains"] == 2
    assert 1.0 <= found.diagnostics["r_hat"] < 1.1
    assert 50 < found.diagnostics["ess"] < 1200


def test_one_graph_that_is_certain_has_no_effective_sample_size() -> None:
    knowledge = known(6, False)
    scores = np.where(family_scores(codes(6), [2] * 6) > -np.inf, 0.0, -np.inf)
    scores[:, 1:] = -np.inf
    assert sampled_posterior(scores, knowledge, EVIDENCE, sampling=Sampling(20, 2)).diagnostics["ess"] is None
