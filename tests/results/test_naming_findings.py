"""What is said of nodes that labels or names gave their meaning."""

from __future__ import annotations

from typing import Any

from inference.results.naming_findings import naming_sentence

NODES = {"hue": 2, "size": 2, "N3": 2}


def summary(source: str, named: list[str], **details: Any) -> dict[str, Any]:
    return {"nodes": NODES, "labelling": {"source": source, "named_nodes": named, "details": details}}


def test_names_of_all_nodes_leave_nothing_open() -> None:
    assert (
        naming_sentence(summary("names", list(NODES)))
        == "Named by names that were given to the clusters: hue, size, N3."
    )


def test_labels_of_some_nodes_say_what_is_open_and_what_is_guessed() -> None:
    details = {"n_labelled": 41, "agreement": {"hue": 1.0, "size": 0.975}, "levels_without_label": {"size": ["large"]}}
    assert naming_sentence(summary("labels", ["hue", "size"], **details)) == (
        "Named by labels of 41 training samples: hue, size. Which outcome of N3 is which is arbitrary. "
        "They agree with 100% of hue, 98% of size. No label says size = large: what stands for it is a guess."
    )


def test_other_sources_are_for_others_to_tell() -> None:
    assert naming_sentence(summary("none", [])) == ""
    assert naming_sentence(summary("environments", ["hue"])) == ""
    assert naming_sentence({}) == ""
