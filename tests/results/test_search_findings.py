"""What is said of clusters that a search named."""

from __future__ import annotations

from typing import Any

import numpy as np
from circle_like_fit import circle_like_fit, circle_like_summary

from causalpima.inference.clusters.assumptions import label_by_independence, label_by_read_outs
from causalpima.inference.clusters.environments import Environments
from causalpima.inference.clusters.labels import Clusters, Labelling
from causalpima.inference.findings.meaning import meaning_sentence
from causalpima.inference.reporting.content import content_of_fit
from causalpima.inference.reporting.page import sections_of

NODES = {"hue": 2, "size": 2}


def summary(labelling: Labelling) -> dict[str, Any]:
    known = list(labelling.named_nodes)
    found = {"is_named": len(known) == len(NODES), "identified_nodes": known, "equivalent_labellings": 3}
    return {"labelling": labelling.to_plain(), "nodes": NODES, "graph": {}, "identifiability": found}


def samples(joints: list[list[float]], n: int = 2000) -> tuple[Clusters, np.ndarray]:
    rng = np.random.default_rng(0)
    cells = np.concatenate([rng.choice(4, n, p=joint) for joint in joints])
    return Clusters(np.eye(4)[cells], rng.standard_normal((len(cells), 2))), np.repeat(np.arange(len(joints)), n)


def named(targets: dict[str, str], joints: list[list[float]]) -> str:
    clusters, codes = samples(joints)
    names = ("none", "red", "big")[: len(joints)]
    return meaning_sentence(summary(Environments(NODES, codes, names, targets).labelling(clusters)))


# p(hue) = .4, p(size | hue) = .2, .9; cells in the order (hue, size).
FREE = [0.48, 0.12, 0.04, 0.36]
DO_HUE = [0.16, 0.04, 0.08, 0.72]
DO_SIZE = [0.18, 0.42, 0.12, 0.28]


def test_environments_that_settle_all() -> None:
    text = named({"red": "hue", "big": "size"}, [FREE, DO_HUE, DO_SIZE])
    assert text.startswith("Named by interventions, red upon hue, big upon size: hue, size. Directed graph")
    assert "hue -> size (" in text
    assert "nats ahead of the next of 3 graphs" in text
    assert "remain" not in text


def test_targets_that_were_found() -> None:
    text = named({}, [FREE, DO_SIZE, DO_HUE])
    assert "red upon hue (found), big upon size (found)" in text
    assert "known up to their names" in text
    assert "size -> hue (" in text  # the first target is the first node


def test_environments_that_leave_labellings() -> None:
    text = named({"red": "hue"}, [FREE, FREE])
    assert "labellings remain that the environments do not tell apart" in text
    assert "no node" in text
    assert not any(word in text for word in ("Directed", "Named by", "red upon"))


def test_labels_and_environments() -> None:
    clusters, codes = samples([FREE, DO_HUE, DO_SIZE])
    base = Labelling(np.arange(4), "labels", ("hue", "size"), {"n_labelled": 5, "agreement": {}})
    found = Environments(NODES, codes, ("none", "red", "big"), {}).labelling(clusters, base)
    text = meaning_sentence(summary(found))
    assert text.startswith("Named by labels of 5 training samples: hue, size. Directed graph by the interventions: hue")


def test_read_outs_are_never_without_a_warning() -> None:
    clusters, _ = samples([FREE])
    cell = clusters.responsibilities.argmax(1)
    values = np.stack([cell // 2, 2.0 * (cell % 2) + cell // 2], axis=1) + 0.1 * clusters.embedding
    found = label_by_read_outs(clusters, NODES, values, np.ones(len(cell), dtype=bool), ["image=moments"])
    text = meaning_sentence(summary(found))
    assert text.startswith("Named by effects that were declared to add up in image=moments, up to names: hue, size.")
    assert "Warning: the assumption that effects add cannot be tested from the fit" in text
    assert "Directed" not in text


def test_independence_says_on_what_it_rests() -> None:
    text = meaning_sentence(summary(label_by_independence(samples([[0.42, 0.28, 0.18, 0.12]])[0], NODES)))
    assert text.startswith("Named by declared independence, up to names: ")
    refuted = meaning_sentence(summary(label_by_independence(samples([[0.4, 0.3, 0.2, 0.1]], 100_000)[0], NODES)))
    assert refuted.startswith("Clusters are unnamed: the declared independence is contradicted")


def test_the_report_shows_what_the_interventions_say_of_edges() -> None:
    clusters, codes = samples([FREE, DO_HUE, DO_SIZE])
    targets = {"red": "hue", "big": "size"}
    told = summary(Environments(NODES, codes, ("none", "red", "big"), targets).labelling(clusters))
    graph = {
        "node_names": ["hue", "size"],
        "edge_strength": [[0, 1], [0, 0]],
        "mutual_information": [[0, 0.1], [0.1, 0]],
    }
    named = {"is_named": True, "equivalent_labellings": 1}
    told = circle_like_summary(labelling=told["labelling"], nodes=NODES, identifiability=named, graph=graph)
    sections = sections_of(content_of_fit(circle_like_fit(40, (2, 2)), told))
    section = next(entry for entry in sections if entry.id == "graph")
    assert section.tables[0].rows[0][2] == "1.00"
    assert not any("observations alone" in sentence for sentence in section.sentences)
    assert (
        "Edges by the interventions (cause → effect), with mutual information: hue → size  0.14 bit."
        in section.sentences
    )
    plain = circle_like_summary(identifiability={"is_named": True, "equivalent_labellings": 1})
    section = next(entry for entry in sections_of(content_of_fit(circle_like_fit(40), plain)) if entry.id == "graph")
    assert not any("N1 — N2" in sentence for sentence in section.sentences), "nothing was searched for"
    assert not any("cause" in sentence for sentence in section.sentences)
