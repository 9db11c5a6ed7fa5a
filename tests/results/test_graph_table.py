"""The posterior as text of at most 80 columns, and as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from circle_like_fit import texts
from test_equivalence_class import chain_fit

from causalpima.inference.findings.graph import graph_table
from causalpima.inference.findings.posterior import node_samples, plain_posterior, sensitivity
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.posterior import mixture_posterior
from causalpima.inference.graphs.scores import Score
from causalpima.inference.reporting.figures.graph import draw_edge_probabilities

NODES = ("N1", "N2", "N3")


def found_posterior(score: Score | None = None, **changes: Any) -> dict[str, Any]:
    samples = node_samples(chain_fit(400))
    assert samples is not None
    known = GraphKnowledge.none(NODES)
    posterior = mixture_posterior(samples, score or Score(), known)
    return {**plain_posterior(posterior, known, samples.outcomes, sensitivity(samples, known, posterior)), **changes}


def test_words_pairs_classes_and_sensitivity() -> None:
    found = found_posterior()
    lines = graph_table(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Posterior over graphs by BIC from 400 samples; all graphs alike beforehand;"
    assert any(line.startswith("Most probable class of graphs: N1 -- N2 -- N3 (") for line in lines)
    numbers = [float(word) for word in next(line for line in lines if line.startswith("N1, N3 ")).split()[2:]]
    assert numbers[0] == pytest.approx(found["adjacency_probability"][0][2], abs=0.005)
    assert numbers[1] == pytest.approx(found["edge_probability"][0][2], abs=0.005)
    assert next(line for line in lines if "another score" in line).split()[-5:] == ["1", "BDeu", "5", "BDeu", "10"]
    assert "Assumed: no hidden common cause, no selection" in graph_table(found)


def test_score_prior_groups_overlap_and_missing_names_are_told() -> None:
    known = {"forbidden": ["N2->N1"], "required": []}
    changes = {"n_independent": 40, "knowledge": known, "edge_prior": -1.0, "is_named": False}
    shares = {"equivalent_labellings": 840, "diagnostics": {"information_share": 0.42}}
    told = " ".join(graph_table(found_posterior(Score("bdeu", 5.0), **changes, **shares)).split())
    assert told.startswith("Warning: the clusters are unnamed. This is the posterior under one of 840 labellings")
    assert "BDeu (equivalent sample size 5) from 400 samples, which count as 40 groups" in told
    assert "the graphs that agree with what is known, log-odds -1 for every edge beforehand" in told
    assert "42 % of the samples' information" in told


def test_a_verdict_that_depends_on_the_score_is_a_warning() -> None:
    found = found_posterior()
    assert "is the same by all of them" in " ".join(graph_table(found).split())
    changed = {**found, "sensitivity": {**found["sensitivity"], "changes": [["N1", "N3"], ["N1", "N2"]]}}
    said = " ".join(graph_table(changed).split())
    assert "Warning: the verdict depends on the score for N1 and N3; N1 and N2." in said
    assert "another score" not in graph_table({**found, "sensitivity": None})


def test_long_names_and_many_classes_stay_within_the_width() -> None:
    found = found_posterior()
    names = ["a name that is much longer than its column" + end for end in "123"]
    many = {**found, "nodes": names, "classes": found["classes"][:1] * 30, "n_classes": 140}
    lines = graph_table(many).splitlines()
    assert max(map(len, lines)) <= 80
    assert "140 classes carry 95 % of the probability:" in lines
    assert "  and 132 more" in lines


def test_the_heat_map_has_every_ordered_pair_once() -> None:
    found = found_posterior(is_named=False)
    figure = draw_edge_probabilities(found)
    edge = [text.get_text() for text in figure.axes[0].texts]
    assert edge == [f"{value:.2f}" for value in np.array(found["edge_probability"])[~np.eye(3, dtype=bool)]]
    told = " ".join(texts(figure).split())
    assert "Rows are causes, columns effects" in told
    assert "Clusters are unnamed" in told
