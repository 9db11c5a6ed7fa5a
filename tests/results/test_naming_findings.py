"""What is said of nodes that labels or names gave their meaning."""

from __future__ import annotations

from typing import Any

from causalpima.inference.findings.meaning import naming_sentence

NODES = {"hue": 2, "size": 2, "N3": 2}


def summary(source: str, named: list[str], **details: Any) -> dict[str, Any]:
    return {"nodes": NODES, "labelling": {"source": source, "named_nodes": named, "details": details}}


def test_names_of_all_nodes_leave_nothing_open() -> None:
    assert (
        naming_sentence(summary("names", list(NODES)))
        == "Named by names that were given to the clusters: hue, size, N3."
    )


def test_labels_of_some_nodes_say_what_is_open_and_what_is_guessed() -> None:
    agreement, levels = {"hue": 1.0, "size": 0.975}, {"size": ["large"]}
    details = {"n_labelled": 41, "left_out_agreement": agreement, "levels_without_label": levels}
    assert naming_sentence(summary("labels", ["hue", "size"], **details)) == (
        "Named by labels of 41 training samples: hue, size. Which outcome of N3 is which is arbitrary. "
        "Labels left out of the naming agree with it in 100% of hue, 98% of size. "
        "No label says size = large: what stands for it is a guess."
    )


def test_labels_are_counted_by_node_where_they_are_not_equally_many() -> None:
    counts = {"hue": 36, "size": 540}
    said = naming_sentence(summary("labels", ["hue", "size"], n_labelled=540, n_labelled_by_node=counts))
    assert said.startswith("Named by labels of 540 training samples (36 of hue, 540 of size): hue, size.")
    same = {"hue": 41, "size": 41}
    said = naming_sentence(summary("labels", ["hue", "size"], n_labelled=41, n_labelled_by_node=same))
    assert said.startswith("Named by labels of 41 training samples: hue, size.")


def test_other_sources_are_for_others_to_tell() -> None:
    assert naming_sentence(summary("none", [])) == ""
    assert naming_sentence(summary("environments", ["hue"])) == ""
    assert naming_sentence({}) == ""


def few(named: list[str], gap: float, unsettled: list[str], missing: list[str]) -> dict[str, Any]:
    details = {"n_labelled": 12, "variables": {"hue": "hue", "size": "size"}, "gap": gap, "n_groups": 4}
    return summary("labels", named, **details, unsettled_groups=unsettled, groups_without_label=missing)


def test_labels_that_do_not_settle_which_is_which_say_so() -> None:
    groups = ["red,small", "red,large"]
    assert naming_sentence(few(["hue"], 0.0, groups, groups)) == (
        "Named by labels of 12 training samples: hue. Which outcome of N3 is which is arbitrary. The labels do not "
        "settle which cluster is which of red,small; red,large (another labelling is 0.0 labels behind), so that size "
        "is not known for sure: label samples of these. 2 of 4 groups have no labelled sample (red,small; red,large): "
        "what they stand for is a guess from the others."
    )


def test_a_group_without_label_is_a_guess_even_where_the_others_leave_it_no_choice() -> None:
    said = naming_sentence(few(["hue", "size"], 1.2, [], ["red,large"]))
    assert "1 of 4 groups has no labelled sample (red,large): what it stands for is a guess from the others." in said
    assert "settle" not in said


def test_labels_that_name_no_node_are_told_all_the_same() -> None:
    said = naming_sentence(few([], 0.4, [f"g{i}" for i in range(6)], []))
    assert said.startswith("Named by labels of 12 training samples: no node. ")
    assert "g3; and 2 more (another labelling is 0.4 labels behind), so that hue, size are not known for sure" in said


def test_enough_labels_warn_of_nothing() -> None:
    said = naming_sentence(few(["hue", "size"], 5.0, [], []))
    assert "settle" not in said
    assert "guess" not in said
