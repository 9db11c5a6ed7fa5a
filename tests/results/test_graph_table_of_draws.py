from __future__ import annotations

from typing import Any

import numpy as np

from causalpima.inference.findings.graph import graph_table
from causalpima.inference.findings.posterior import plain_posterior
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.enumeration import Evidence
from causalpima.inference.graphs.posterior import Sampling, exact_posterior, sampled_posterior
from causalpima.inference.graphs.scores import Score, family_scores

KNOWN = GraphKnowledge.none(tuple("ABCDEF"))
OUTCOMES = (2,) * 6
SCORES = family_scores(np.random.default_rng(0).integers(0, 2, (200, 6)), [2] * 6)
EVIDENCE = Evidence(Score(), 200, 200)


def words(found: dict[str, Any]) -> str:
    return " ".join(graph_table(found).split())


def test_draws_from_exact_sums_are_told() -> None:
    found = plain_posterior(exact_posterior(SCORES, KNOWN, EVIDENCE, sampling=Sampling(60)), KNOWN, OUTCOMES)
    assert "classes come from 60 independent draws of graphs" in words(found)
    assert "chains" not in words(found)


def test_chains_are_told_and_doubted_where_they_disagree() -> None:
    found = plain_posterior(sampled_posterior(SCORES, KNOWN, EVIDENCE, sampling=Sampling(40, 2)), KNOWN, OUTCOMES)
    found["diagnostics"] |= {"r_hat": 1.01, "ess": 400.0}
    assert "2 chains of 20 draws. Of edges and score, the largest R-hat is 1.010" in words(found)
    for worse in ({"r_hat": 1.2, "ess": 400.0}, {"r_hat": 1.0, "ess": 12.0}, {"r_hat": None, "ess": 400.0}):
        found["diagnostics"] |= worse
        assert "Warning: the chains do not agree well" in words(found)
    found["diagnostics"] |= {"r_hat": None, "ess": None}
    assert "R-hat" not in words(found)


def test_a_best_graph_of_another_class_is_told() -> None:
    found = plain_posterior(exact_posterior(SCORES, KNOWN, EVIDENCE, sampling=Sampling(60)), KNOWN, OUTCOMES)
    assert "best score is another" not in words({**found, "cpdag": found["classes"][0]["cpdag"]})
    other = np.zeros((6, 6), dtype=int)
    other[[0, 1], [2, 2]] = 1
    assert "best score is another: A -> C <- B" in words({**found, "cpdag": other.tolist()})


def test_a_table_has_no_clusters_to_assume_anything_of() -> None:
    found = plain_posterior(exact_posterior(SCORES, KNOWN, EVIDENCE, sampling=Sampling(60)), KNOWN, OUTCOMES)
    assert "the clusters are what their names say" in words(found)
    assert "clusters" not in words({**found, "levels": {}})
