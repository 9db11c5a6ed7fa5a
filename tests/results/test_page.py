"""The page of a run: its sentences, its nodes and tables, what later commands left; the same from memory and disk."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from circle_like_fit import circle_like_fit, circle_like_summary
from fit_arrays_example import example_fit

from causalpima.inference.reporting.arviz import write_posterior
from causalpima.inference.reporting.content import content_of_fit, content_of_folder, later_parts, read_later
from causalpima.inference.reporting.figures.files import write_figures
from causalpima.inference.reporting.headline import headline
from causalpima.inference.reporting.page import sections_of, write_report
from causalpima.inference.reporting.page_tables import bibtex, conditional_tables, node_parts, posterior_tables
from causalpima.inference.reporting.summary import summarise
from causalpima.inference.store.run_folder import RunFolder

COLLIDER = [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
CHAIN = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def posterior(cpdag: list[list[int]], probability: float = 0.83) -> dict[str, Any]:
    directed = np.array([[0.0, 0.01, 0.9], [0.02, 0.0, 0.7], [0.05, 0.2, 0.0]])
    return {
        "nodes": ["N1", "N2", "N3"],
        "edge_probability": directed.tolist(),
        "adjacency_probability": (directed + directed.T).tolist(),
        "compelled_probability": (directed * 0.5).tolist(),
        "cpdag": cpdag,
        "classes": [{"cpdag": cpdag, "probability": probability}, {"cpdag": CHAIN, "probability": 0.12}],
        "score": "bdeu",
        "equivalent_sample_size": 1.0,
        "method": "enumeration",
    }


def named(**changes: Any) -> dict[str, Any]:
    """A summary whose nodes have a meaning, with a posterior over graphs."""
    graph = circle_like_summary()["graph"] | {"posterior": posterior(COLLIDER)} | changes.pop("graph", {})
    found = {
        "identifiability": {"is_named": True, "identified_nodes": ["N1", "N2", "N3"], "equivalent_labellings": 1},
        "labelling": {"source": "mask", "named_nodes": ["N1", "N2", "N3"], "details": {}},
        "graph": graph,
    }
    return circle_like_summary(**{**found, **changes})


def test_three_sentences_tell_groups_graph_and_certainty() -> None:
    groups, meaning, certainty = headline(named())
    assert "In 4096 samples of circles, measured as image, 8 of 8 groups" in groups
    assert "the largest has 16 % of the samples, the smallest 10 %" in groups
    assert meaning.startswith("What N1, N2 and N3 mean is told by which modality sees which node: N1 → N3 ← N2")
    assert "has probability 0.83 among all classes of graphs (BDeu, equivalent sample size 1)" in meaning
    assert "no hidden common cause and no selection" in meaning
    assert "clearly apart" in certainty
    assert "was not tried" in certainty
    assert "calibration is not known" in certainty


def test_a_class_of_lines_assumes_nothing_and_certainty_is_never_one() -> None:
    meaning = headline(named(graph={"posterior": posterior(CHAIN, 0.999)}))[1]
    assert "N1 — N2 — N3 has probability above 0.99" in meaning
    assert "hidden" not in meaning


def test_without_a_posterior_the_class_of_the_search_is_told() -> None:
    found = {"cpdag": CHAIN, "node_names": ["N1", "N2", "N3"], "gap_nats": 7.9}
    graph = circle_like_summary()["graph"] | {"equivalence_class": found}
    meaning = headline(named() | {"graph": graph})[1]
    assert "the best class of graphs is N1 — N2 — N3 (probable, 7.9 nats ahead of the next)" in meaning


def test_unnamed_groups_claim_nothing() -> None:
    meaning = headline(circle_like_summary())[1]
    assert meaning.startswith("The groups are unnamed: 840 readings as N1, N2 and N3 fit equally well (one kind of")
    assert meaning.endswith("nothing is said of causes.")
    part = {"is_named": False, "identified_nodes": ["N2"], "equivalent_labellings": 6}
    modalities = {name: {"shape": [3], "present": 9} for name in "ab"}
    meaning = headline(circle_like_summary(identifiability=part, modalities=modalities))[1]
    assert meaning.startswith("N2 is identified, N1 and N3 are not: 6 readings")
    assert "one kind of measurement" not in meaning
    assert "N1 and N3 and every edge below are" in meaning


def test_one_node_numbers_the_groups() -> None:
    found = {"is_named": True, "identified_nodes": ["N1"], "equivalent_labellings": 1}
    graph = {"node_names": ["N1"], "edge_strength": [[0.0]]}
    meaning = headline(circle_like_summary(nodes={"N1": 8}, identifiability=found, graph=graph))[1]
    assert meaning == "N1 numbers the groups: there is one node, and so no graph."


def test_a_collapsed_fit_has_no_result() -> None:
    clusters = circle_like_summary()["clusters"] | {"n_occupied": 2}
    sentences = headline(named(status="collapsed", clusters=clusters))
    assert sentences[0].endswith(" collapsed.")
    assert "Neither groups nor nodes nor graph" in sentences[1]
    assert not any("probability" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("ari", "words"),
    [
        ([1.0, 0.97, 0.99, 0.95], "3 of 3 other starts found the same groups (mean ARI 0.97)"),
        ([1.0, 0.6, 0.99, 0.96], "2 of 3 other starts found the same groups (mean ARI 0.97)"),
        ([1.0, 0.6], "the other start found other groups (mean ARI 0.97)"),
    ],
)
def test_agreement_of_starts_is_told(ari: list[float], words: str) -> None:
    starts = {"n": len(ari), "chosen": 0, "ari": [ari], "statuses": ["ok"] * len(ari), "agreement": {"ari": 0.97}}
    assert words in headline(circle_like_summary(restarts=starts))[2]


@pytest.mark.parametrize(("error", "doubt"), [(0.03, False), (0.2, True)])
def test_bad_calibration_is_doubted(error: float, doubt: bool) -> None:
    scores = circle_like_summary()["evaluation"] | {"calibration": {"ece": error, "ece_if_calibrated": 0.01}}
    sentence = headline(circle_like_summary(evaluation=scores))[2]
    assert f"calibration error is {error:.3f} against all factors, where 0.010" in sentence
    assert ("do not take" in sentence) == doubt


def test_calibration_of_a_handful_of_samples_is_not_known() -> None:
    few = {"calibration": {"ece": 0.333, "ece_if_calibrated": 0.0}, "n_samples": 6}
    sentence = headline(circle_like_summary(evaluation=circle_like_summary()["evaluation"] | few))[2]
    assert "calibration is not known, as 6 samples with all factors do not tell it" in sentence


def test_clusters_that_overlap_are_not_called_apart() -> None:
    clusters = circle_like_summary()["clusters"] | {"entropy": 0.4}
    assert "not clearly apart" in headline(circle_like_summary(clusters=clusters))[2]


def test_edges_and_classes_have_their_probabilities() -> None:
    edges, classes = posterior_tables(named())
    assert edges.rows[0] == ["N1 — N3", "0.95", "0.90", "0.05", "0.45", "0.03"]
    assert [row[0] for row in edges.rows] == ["N1 — N3", "N2 — N3", "N1 — N2"]
    assert classes.rows == [["N1 → N3 ← N2", "0.830"], ["N1 — N2 — N3", "0.120"]]
    assert posterior_tables(circle_like_summary()) == []


def test_conditional_tables_follow_the_graph() -> None:
    fit = circle_like_fit(10)
    found = {"cpdag": COLLIDER, "node_names": ["N1", "N2", "N3"], "gap_nats": 7.9}
    summary = named(graph={"equivalence_class": found})
    tables = conditional_tables(summary, fit.graph.outcome_names, fit.graph.log_joint)
    assert [table.caption for table in tables] == ["p(N1)", "p(N2)", "p(N3 | N1, N2)"]
    joint = np.exp(fit.graph.log_joint)
    shares = joint[1, 0] / joint[1, 0].sum()
    assert tables[2].rows[2] == ["1, 0", *(f"{share:.3f}" for share in shares)]
    assert conditional_tables(circle_like_summary(), fit.graph.outcome_names, fit.graph.log_joint) == []


def test_nodes_say_what_they_are_and_what_they_explain() -> None:
    shares = {"nodes": {"N1": 0.5, "N2": 0.1}, "random_labelling": {"N1": 0.2, "N2": 0.3}}
    low = {"nodes": {"N1": 0.7, "N2": 0.0}, "random_labelling": {"N1": 0.1, "N2": 0.1}}
    part = {"is_named": False, "identified_nodes": ["N1"]}
    summary = circle_like_summary(
        nodes={"N1": 2, "N2": 2}, identifiability=part, variance_explained={"a": shares, "b": low}
    )
    first, second = node_parts(summary, [("soft", "stiff"), ("0", "1")], {})
    assert (first.title, first.note) == ("N1", "feature")
    assert second.note == "not identified: an arbitrary coordinate, no feature"
    assert first.sentences[0] == "2 outcomes: soft, stiff."
    assert first.sentences[1].endswith("b 70 % (10 %), a 50 % (20 %).")


def test_one_node_that_nothing_names_numbers_the_groups() -> None:
    found = {"is_named": True, "identified_nodes": ["N1"]}
    (part,) = node_parts(circle_like_summary(nodes={"N1": 2}, identifiability=found), [("0", "1")], {})
    assert part.note == "numbers the groups"


def test_later_results_are_shown_with_their_verdicts(tmp_path: Path) -> None:
    line = {"key": "k", "name": "k-hat", "found": "0.9", "verdict": "fails", "advice": "train <longer>"}
    (tmp_path / "diagnose.json").write_text(json.dumps({"lines": [line], "seconds": 3.0}))
    (tmp_path / "mcmc.json").write_text(json.dumps({"r_hat": {"N": 1.01}, "draws": [1, 2, 3]}))
    (tmp_path / "other.json").write_text("{}")
    diagnose, mcmc = later_parts(read_later(tmp_path))
    assert diagnose.tables[0].rows == [["k-hat", "fails", "0.9", "train <longer>"]]
    assert mcmc.tables[0].rows == [["r_hat: N", "1.01"]]
    (tmp_path / "check.json").write_text("{")
    with pytest.raises(ValueError, match=r"check\.json: expected JSON"):
        read_later(tmp_path)


def test_both_are_cited_with_the_version() -> None:
    text = bibtex({"causalpima": "1.2.3"})
    assert "2310.18471" in text
    assert "version = {1.2.3}" in text
    assert text.count("@") == 2
    assert text.count("{") == text.count("}")


def test_the_page_from_a_folder_is_that_from_memory(tmp_path: Path) -> None:
    fit = example_fit(history=[])
    folder, summary = RunFolder(tmp_path / "run"), summarise(fit, 1.0)
    folder.path.mkdir()
    write_posterior(fit, folder.posterior)
    figures = write_figures(fit, folder.figures, summary=summary)
    folder.write_summary(summary)
    write_report(content_of_fit(fit, json.loads(folder.summary.read_text()), figures), tmp_path / "memory.html")
    write_report(content_of_folder(folder), folder.report)
    assert folder.report.read_bytes() == (tmp_path / "memory.html").read_bytes()
    assert folder.report.stat().st_size < 2 * sum(path.stat().st_size for path in figures) + 100_000


def test_every_figure_stands_once_and_those_of_nodes_with_their_node(tmp_path: Path) -> None:
    fit = example_fit(history=[])
    summary = summarise(fit, 1.0)
    figures = write_figures(fit, tmp_path, summary=summary)
    sections = sections_of(content_of_fit(fit, summary, figures))
    parts = [part for section in sections for part in section.parts]
    pictures = [*(p for section in sections for p in section.pictures), *(p for part in parts for p in part.pictures)]
    assert len(pictures) == len(figures) == len({picture.data for picture in pictures})
    assert all(picture.alt for picture in pictures)
    nodes = next(section for section in sections if section.id == "nodes").parts
    assert [part.title for part in nodes] == list(summary["nodes"])
    n_drawn = sum(modality.likelihood != "categorical" for modality in fit.modalities.values())
    assert [len(part.pictures) for part in nodes] == [n_drawn] * len(nodes)


def test_a_folder_without_a_result_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(ValueError, match="expected a finished run"):
        content_of_folder(folder)
    folder.write_summary({"status": "diverged", "dataset": "d", "nodes": {}, "modalities": {}})
    with pytest.raises(ValueError, match="got one that diverged"):
        content_of_folder(folder)
    folder.write_summary(circle_like_summary())
    with pytest.raises(ValueError, match=r"posterior\.nc, got none"):
        content_of_folder(folder)
    folder.posterior.write_bytes(b"no netCDF")
    with pytest.raises(ValueError, match="which cannot be read"):
        content_of_folder(folder)


def test_results_that_a_new_result_makes_void_are_removed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.figures.mkdir()
    void = ("figures/outcomes_N1_image.png", "figures/check.png", "check.json")
    for name in (*void, "figures/mine.png", "summary.json"):
        (tmp_path / name).write_text("")
    folder.remove_outdated()
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["mine.png", "summary.json"]


def test_nodes_of_a_renamed_run_are_those_of_its_summary(tmp_path: Path) -> None:
    """Figures of nodes that are called otherwise stand at the end, not with another node."""
    fit = circle_like_fit(20, (2, 2))
    figures = write_figures(fit, tmp_path)
    graph = replace(fit.graph, node_names=("a", "b"))
    fit = replace(fit, graph=graph, factors={})
    sections = sections_of(content_of_fit(fit, summarise(fit, 0.0), figures))
    assert all(not part.pictures for part in next(s for s in sections if s.id == "nodes").parts)
