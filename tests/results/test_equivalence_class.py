"""The class of graphs of a fit whose nodes have a meaning: which samples count, when there is one, how it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, circle_like_summary

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.graph import class_sentence
from causalpima.inference.findings.posterior import graph_search
from causalpima.inference.findings.verdicts import gap_text
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.hidden import log_likelihood_ratio
from causalpima.inference.reporting.content import content_of_fit
from causalpima.inference.reporting.page import sections_of
from causalpima.inference.reporting.summary import summarise

DIRECTED = "an arrow: directed by the class, assuming no hidden common cause and no selection"
DECLARED = "directed by what was declared, not by the data: N2 -> N1, N2 -> N3, N3 -> N1"
CHAIN = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
NAMED = {
    "equivalent_labellings": 1,
    "identified_nodes": ["N1", "N2", "N3"],
    "is_named": True,
    "suggestions": [],
    "before": {"mask": {}},
}


def chain(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """N1 -> N2 -> N3, and q(N|X) of clusters that overlap by 5 % each, with the p(N) that they were computed with."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.85, first, 1 - first)
    third = np.where(rng.random(n) < 0.85, second, 1 - second)
    cells = 4 * first + 2 * second + third
    joint = np.array([0.5 * (0.85, 0.15)[a ^ b] * (0.85, 0.15)[b ^ c] for a, b, c in np.ndindex(2, 2, 2)])
    seen = np.where(rng.random(n) < 0.05, rng.integers(0, 8, n), cells)
    likelihood = np.where(np.eye(8)[seen] > 0, 0.95 + 0.05 / 8, 0.05 / 8)
    weight = likelihood * joint
    return weight / weight.sum(1, keepdims=True), joint.reshape(2, 2, 2)


def chain_fit(n: int = 2000, **changes: Any) -> FitArrays:
    r, joint = chain(n)
    fit = circle_like_fit(n_samples=n)
    graph = vars(fit.graph) | {"log_joint": np.log(joint), "node_names": ("N1", "N2", "N3")}
    fields: dict[str, Any] = {"responsibilities": r, "graph": type(fit.graph)(**graph), "identifiability": NAMED}
    return circle_like_fit(n_samples=n, **(fields | changes))


def equivalence_class(fit: FitArrays) -> dict[str, Any] | None:
    found: dict[str, Any] | None = graph_search(fit).get("equivalence_class")
    return found


def test_named_nodes_have_a_class() -> None:
    found = summarise(chain_fit(), 0.0)["graph"]["equivalence_class"]
    assert found["cpdag"] == CHAIN
    assert found["node_names"] == ["N1", "N2", "N3"]
    assert found["gap_nats"] > 0
    assert found["score"] == "bic"
    assert found["n_samples"] == found["n_independent"] == 2000


def test_unnamed_nodes_have_none() -> None:
    assert "equivalence_class" not in summarise(chain_fit(identifiability=None), 0.0)["graph"]


def test_one_node_and_five_have_none() -> None:
    assert equivalence_class(circle_like_fit(outcomes=(4,))) is None
    assert equivalence_class(circle_like_fit(outcomes=(2,) * 5)) is None


def test_held_out_samples_and_interventions_do_not_count() -> None:
    """Two thirds of the samples are spoilt: under an intervention, or held out."""
    r, _ = chain(2000)
    spoilt = r.copy()
    spoilt[600:] = np.random.default_rng(1).permutation(r[600:].reshape(-1, 2, 4), axis=1).reshape(-1, 8)
    split = np.where(np.arange(2000) < 1300, "train", "validation")
    environment = (np.arange(2000) >= 600).astype(int)
    fit = chain_fit(responsibilities=spoilt, split=split, environment=environment)
    found = equivalence_class(fit)
    assert found is not None
    assert found["cpdag"] == CHAIN
    assert found["n_samples"] == 600
    assert equivalence_class(chain_fit(environment=np.ones(2000))) is None


def test_replicates_of_a_group_count_as_one_sample() -> None:
    """100 specimens, each measured 20 times."""
    r, _ = chain(100)
    once, many = circle_like_fit(n_samples=100), circle_like_fit(n_samples=2000)
    graph = chain_fit().graph
    alone = equivalence_class(replace(once, graph=graph, responsibilities=r))
    groups = np.arange(2000) // 20
    grouped = equivalence_class(replace(many, graph=graph, responsibilities=np.repeat(r, 20, axis=0), groups=groups))
    assert alone is not None
    assert grouped is not None
    assert (grouped["n_samples"], grouped["n_independent"]) == (2000, 100)
    assert grouped["gap_nats"] == pytest.approx(alone["gap_nats"], abs=1e-3)
    assert grouped["cpdag"] == alone["cpdag"]


@pytest.mark.parametrize(
    ("cpdag", "drawn"),
    [
        (CHAIN, "N1 -- N2 -- N3; clear, 12.3 nats ahead of the next; a line: direction not identified."),
        ([[0, 0, 0], [1, 0, 1], [1, 0, 0]], f"N1 <- N2 -> N3 -> N1; clear, 12.3 nats ahead of the next; {DECLARED}."),
        ([[0, 1, 0], [0, 0, 0], [0, 1, 0]], f"N1 -> N2 <- N3; clear, 12.3 nats ahead of the next; {DIRECTED}."),
        ([[0, 0, 1], [0, 0, 1], [0, 0, 0]], f"N1 -> N3 <- N2; clear, 12.3 nats ahead of the next; {DIRECTED}."),
        (np.zeros((3, 3), int).tolist(), "no edge; clear, 12.3 nats ahead of the next."),
    ],
)
def test_classes_are_drawn_along_their_edges(cpdag: list[list[int]], drawn: str) -> None:
    assert class_sentence(summary_with(cpdag)) == f"Equivalence class by exact search (BIC): {drawn}"


def test_a_star_and_two_pairs() -> None:
    star = np.zeros((4, 4), int)
    star[0, 1:] = star[1:, 0] = 1
    pairs = np.zeros((4, 4), int)
    pairs[0, 1] = pairs[2, 3] = pairs[3, 2] = 1
    names = ["a", "b", "c", "d"]
    for cpdag, drawn in ((star, "a -- b, c -- a -- d;"), (pairs, "a -> b, c -- d;")):
        found = {"cpdag": cpdag.tolist(), "node_names": names, "gap_nats": 0.0, "score": "bic", "n_samples": 9}
        sentence = class_sentence({"graph": {"equivalence_class": found}})
        assert drawn in sentence
        assert "not decided, another is as good" in sentence


def summary_with(cpdag: list[list[int]]) -> dict[str, Any]:
    found = {
        "cpdag": cpdag,
        "node_names": ["N1", "N2", "N3"],
        "gap_nats": 12.34,
        "score": "bic",
        "n_samples": 2000,
        "n_independent": 2000,
    }
    graph = circle_like_summary()["graph"] | {"equivalence_class": found}
    return circle_like_summary(graph=graph, identifiability=NAMED)


def test_the_report_has_the_class_first_and_no_soft_strengths() -> None:
    fit = chain_fit()
    section = next(part for part in sections_of(content_of_fit(fit, summarise(fit, 0.0))) if part.id == "graph")
    assert section.sentences[0].startswith("Equivalence class by exact search (BIC): N1 — N2 — N3; ")
    assert section.sentences[1] == "Probability of this class among all: 1.00."
    with_probability = "Edges of the class, with probability (joined, whichever way round) and mutual information: "
    assert section.sentences[2].startswith(f"{with_probability}N1 — N2  1.00, ")
    assert [part.title for part in section.parts] == ["Conditional tables"]


def test_classes_within_three_nats_are_listed() -> None:
    """Of 60 samples BIC does not decide: the rivals are those of the scores themselves."""
    fit = chain_fit(60, responsibilities=chain(60)[0])
    found = equivalence_class(fit)
    assert found is not None
    r, joint = chain(60)
    scored = score_classes(log_likelihood_ratio(r, joint), (2, 2, 2), 60)
    behind = scored.bic[0] - scored.bic
    assert [rival["behind_nats"] for rival in found["near"]] == pytest.approx(behind[1 : (behind < 3).sum()].tolist())
    assert len(found["near"]) > 0
    assert found["near"][0]["behind_nats"] == pytest.approx(found["gap_nats"])
    assert "Within 3 nats: " in class_sentence({"graph": {"equivalence_class": found}})
    assert equivalence_class(chain_fit())["near"] == []  # type: ignore[index]


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (0.0, "not decided, another is as good"),
        (2.99, "not decided, 3.0 nats ahead of the next"),
        (3.0, "probable, 3.0 nats ahead of the next"),
        (10.0, "probable, 10.0 nats ahead of the next"),
        (10.1, "clear, 10.1 nats ahead of the next"),
        (None, ""),
        (float("nan"), ""),
    ],
)
def test_gaps_have_words(gap: float | None, words: str) -> None:
    assert gap_text(gap) == words
