"""What goes before the scores of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalpima.inference.clusters.identify import SideInformation, identification
from causalpima.inference.findings.evaluation import evaluation_remarks

NODES = {"N1": 2, "N2": 2}


def summary(*labels: str) -> dict[str, Any]:
    found = identification(SideInformation(NODES, labels=labels), None, np.repeat(np.eye(4), 3, axis=0), [])
    return {"nodes": NODES, "identifiability": found, "graph": {}, "labelling": {"source": "none"}}


def remarks(told: dict[str, Any], known: int, split: str = "all") -> str:
    codes = {"hue": np.where(np.arange(600) < known, 0, -1), "size": np.zeros(600, dtype=int)}
    return evaluation_remarks(told, {"split": split}, codes, 600)


def test_meaning_and_nodes_that_are_not_identified() -> None:
    text = " ".join(remarks(summary(), 600).split())
    assert text.startswith("Clusters, unnamed: 3 labellings fit equally well")
    assert "Not identified: N1, N2. Scores by these nodes hold for one of several readings" in text
    assert "Not identified: N2. Scores by this node" in " ".join(remarks(summary("N1"), 600).split())


def test_nothing_is_said_of_what_is_all_known() -> None:
    assert remarks(summary("N1", "N2"), 600) == ""


def test_how_many_samples_have_labels() -> None:
    told = summary("N1", "N2")
    assert remarks(told, 300) == "300 of 600 samples have labels of every factor (training samples included)."
    assert remarks(told, 300, "test") == "300 of 600 samples have labels of every factor."
    assert evaluation_remarks(told, {}, {}, 600) == ""


def test_lines_fit() -> None:
    assert max(map(len, remarks(summary(), 10).splitlines())) <= 80
