"""What the posterior says in a summary's sentences, beside edges and in the figure of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from circle_like_fit import circle_like_summary, texts
from test_equivalence_class import CHAIN, NAMED

from causalpima.inference.findings.graph import Signs, edge_texts, edges_heading, posterior_sentence, shown_graph
from causalpima.inference.reporting.exported_graph import exported_graph
from causalpima.inference.reporting.figures.graph import draw_graph
from causalpima.inference.reporting.headline import graph_clause

#  N1 -- N2 -- N3, with N1 -- N3 at 0.12


def _posterior(**changes: Any) -> dict[str, Any]:
    joined = [[0.0, 0.97, 0.12], [0.97, 0.0, 1.0], [0.12, 1.0, 0.0]]
    found = {
        "nodes": ["N1", "N2", "N3"],
        "cpdag": CHAIN,
        "adjacency_probability": joined,
        "edge_probability": (np.array(joined) / 2).tolist(),
        "compelled_probability": np.zeros((3, 3)).tolist(),
        "classes": [{"cpdag": CHAIN, "probability": 0.83}],
        "sensitivity": {"scores": {}, "changes": []},
    }
    return {**found, **changes}


def _summary(cpdag: list[list[int]] | None = CHAIN, **changes: Any) -> dict[str, Any]:
    searched = {"cpdag": cpdag, "node_names": ["N1", "N2", "N3"], "gap_nats": 4.0}
    graph = circle_like_summary()["graph"] | {"posterior": _posterior(**changes)}
    return circle_like_summary(graph=graph | ({"equivalence_class": searched} if cpdag else {}), identifiability=NAMED)


def test_the_probability_of_the_class_and_what_else_may_be_joined() -> None:
    assert posterior_sentence(_summary()) == (
        "Probability of this class among all: 0.83. Not joined in it, yet with probability: N1 and N3 0.12."
    )


def test_a_class_that_is_not_the_best_of_the_search_is_drawn() -> None:
    signs = Signs("→", "←", "—")
    for cpdag in ([[0, 0, 0]] * 3, None):
        said = posterior_sentence(_summary(cpdag), signs)
        assert said.startswith("Most probable class of graphs (BIC): N1 — N2 — N3 (0.83).")


def test_a_verdict_that_another_score_changes_is_told() -> None:
    said = posterior_sentence(_summary(sensitivity={"changes": [["N1", "N3"], ["N1", "N2"]]}))
    assert said.endswith("Another score changes the verdict on N1 and N3; N1 and N2: python -m inference.graph RUN.")


def test_a_graph_that_was_given_is_shown_as_that_and_not_as_a_finding() -> None:
    summary = _summary()
    summary["graph"]["given"] = ["N3->N1"]
    found = shown_graph(summary)
    assert found.basis == "given"
    assert found.matrix() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert edges_heading(summary).startswith("Edges of the graph that was given")
    figure = draw_graph(summary)
    assert figure is not None
    assert "a declaration, not a finding" in " ".join(texts(figure).split())
    assert graph_clause(summary) == "the graph was given, not found: N1 ← N3"
    note = exported_graph(summary, [["0", "1"]] * 3, np.zeros((2, 2, 2)), as_labelled=True).note
    assert "a declaration, not a finding" in note


def test_what_a_guide_over_graphs_says_stands_beside() -> None:
    summary = _summary()
    summary["graph"]["variational"] = {"edge_probability": [[0, 0.7, 0.1], [0.25, 0, 0.9], [0, 0.05, 0]]}
    said = posterior_sentence(summary)
    assert "joins N1 and N2 with 0.95; N1 and N3 with 0.10; N2 and N3 with 0.95 (too sure of directions" in said


def test_unnamed_nodes_have_no_sentence_and_what_was_left_out_has_its_command() -> None:
    assert posterior_sentence(_summary() | {"identifiability": None}) == ""
    assert posterior_sentence(circle_like_summary(identifiability=NAMED)) == (
        "Posterior over graphs: takes longer than a second; python -m inference.graph RUN computes it."
    )


def test_edges_have_their_probability() -> None:
    assert "probability (joined, whichever way round)" in edges_heading(_summary())
    assert edge_texts(_summary(), 10) == ["N1 -- N2  0.97, 0.53 bit", "N2 -- N3  1.00, < 0.01 bit"]
    found = shown_graph(_summary())
    assert [(edge.first, edge.second, edge.probability) for edge in found.doubtful] == [(0, 2, 0.12)]
    assert [edge.probability for edge in found.edges] == [0.97, 1.0]


def test_what_is_shown_is_the_most_probable_class_and_not_that_of_the_best_graph() -> None:
    """A collider has the best score, the chain's class of three graphs more of the probability."""
    collider = [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    summary = _summary(collider)
    summary["graph"]["posterior"]["cpdag"] = collider
    found = shown_graph(summary)
    assert [(edge.first, edge.second, edge.is_directed) for edge in found.edges] == [(0, 1, False), (1, 2, False)]


def test_the_figure_has_numbers_thickness_and_doubtful_pairs() -> None:
    figure = draw_graph(_summary())
    assert figure is not None
    told = " ".join(texts(figure).split())
    for number in ("0.97", "1.00", "0.12", "Most probable equivalence class", "0.83"):
        assert number in told
    assert "Number and thickness: probability that the two nodes are joined. Dashed: not in the class." in told
    widths = sorted(round(float(patch.get_linewidth()), 2) for patch in figure.axes[0].patches[:3])
    assert widths == [0.8, 1.57, 1.6]
