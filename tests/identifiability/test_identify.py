"""The report on what side information leaves undetermined."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.inference.clusters.identify import identify
from causalpima.inference.store.files import to_json

NODES = {"N1": 2, "N2": 2, "N3": 2}
OVERLAPPING = {"a": ("N1", "N2"), "b": ("N2", "N3"), "c": ("N1", "N3")}


@pytest.mark.parametrize(
    ("mask", "labellings", "identified"),
    [
        #  a sees N1 N2, b sees N2 N3, ...        remaining, fixed: {node} is an intersection of masks
        (OVERLAPPING, 1, ("N1", "N2", "N3")),
        ({"a": ("N1", "N2"), "b": ("N3",), "c": ("N2",)}, 2, ("N2", "N3")),
        ({"a": ("N1", "N2"), "b": ("N2", "N3")}, 4, ("N2",)),
        ({"a": ("N1", "N2", "N3")}, 840, ()),
        ({}, 840, ()),
    ],
)
def test_masks(mask: dict[str, tuple[str, ...]], labellings: int, identified: tuple[str, ...]) -> None:
    report = identify(NODES, mask)
    assert report.equivalent_labellings == labellings
    assert report.identified_nodes == identified
    assert report.is_exact
    assert bool(report.remaining) == (labellings > 1)


def test_two_nodes_and_one_modality() -> None:
    report = identify({"N1": 2, "N2": 2})
    assert report.equivalent_labellings == 3
    assert "N1 may be read as N1 xor N2" in report.remaining[0]


def test_one_node_is_its_clusters() -> None:
    report = identify({"N1": 5})
    assert (report.equivalent_labellings, report.identified_nodes, report.edges) == (1, ("N1",), ())


def test_a_node_that_no_modality_sees_is_refused() -> None:
    with pytest.raises(ValueError, match="mask: expected every node to be seen by a modality, got none that sees N3"):
        identify(NODES, {"a": ("N1", "N2")})


def test_labels_of_all_nodes_or_independence_leave_one() -> None:
    assert identify(NODES, labels=tuple(NODES)).equivalent_labellings == 1
    assert identify(NODES, independent=True).equivalent_labellings == 1
    assert identify(NODES, independent=True).identified_nodes == tuple(NODES)


def test_environments_give_an_upper_bound() -> None:
    set_first = identify(NODES, environments=["do(N1)"])
    assert (set_first.equivalent_labellings, set_first.is_exact) == (72, False)
    assert set_first.identified_nodes == ("N1",)
    every = identify(NODES, environments=["do(N1=0)", "do(N2)", "do(N3)"])
    assert (every.equivalent_labellings, every.is_exact) == (1, True)
    assert {edge.status for edge in every.edges} == {"direction"}
    soft = identify(NODES, environments=["soft(N1)", "soft(N2)", "soft(N3)"])
    assert soft.equivalent_labellings == 6 * 840  # each node has a name of its own: none are exchanged
    assert (soft.identified_nodes, soft.is_exact) == ((), False)


def test_unknown_targets_count_as_the_nodes_that_leave_most() -> None:
    assert identify(NODES, environments=["do(?)"]).equivalent_labellings == 72
    assert identify(NODES, environments=["do(?)"] * 3).equivalent_labellings == 1
    assert identify(NODES, environments=["do(?)"] * 3).identified_nodes == tuple(NODES)
    masked = identify(NODES, {"a": ("N1", "N2"), "b": ("N2", "N3")}, environments=["do(?)"])
    assert masked.equivalent_labellings == 4  # the target may be N2, which is fixed already


def test_a_node_of_three_outcomes_has_to_be_set_twice() -> None:
    nodes = {"a": 2, "b": 3}
    free = identify(nodes).equivalent_labellings
    assert identify(nodes, environments=["do(b=0)", "do(b=0)"]).equivalent_labellings == free
    assert identify(nodes, environments=["do(b=0)", "do(b=1)"]).identified_nodes == ("b",)
    assert identify(nodes, environments=["do(?)"]).equivalent_labellings == free


def test_tiers_name_nodes_and_direct_edges() -> None:
    assert identify(NODES, tiers=[["N1"], ["N2", "N3"]]).equivalent_labellings == 3 * 840
    report = identify(NODES, OVERLAPPING, tiers=[["N3"], ["N1", "N2"]])
    assert [(edge.nodes, edge.status) for edge in report.edges] == [
        (("N1", "N2"), "presence"),
        (("N1", "N3"), "direction"),
        (("N2", "N3"), "direction"),
    ]
    assert "N3 -> N1" in report.edges[1].reason


def test_edges_mean_nothing_without_identified_nodes() -> None:
    assert {edge.status for edge in identify(NODES).edges} == {"meaningless"}
    some = identify(NODES, {"a": ("N1", "N2"), "b": ("N3",), "c": ("N2",)}).edges
    assert [edge.status for edge in some] == ["meaningless", "meaningless", "association"]
    assert "N1 is not identified" in some[2].reason


@pytest.mark.parametrize(
    ("environments", "statuses"),
    [
        #  N1 - N2      N1 - N3      N2 - N3
        ((), ("presence", "presence", "presence")),
        (("soft(N1)",), ("direction", "direction", "presence")),
        (("do(N3)",), ("presence", "direction", "direction")),
        (("soft(N1)", "do(?)"), ("direction", "direction", "presence")),
        (("do(N1)", "do(?)"), ("direction", "direction", "direction")),
        (("do(?)", "do(?)"), ("direction", "direction", "direction")),
    ],
)
def test_interventions_direct_the_edges_of_their_targets(
    environments: tuple[str, ...], statuses: tuple[str, ...]
) -> None:
    assert tuple(edge.status for edge in identify(NODES, OVERLAPPING, environments=environments).edges) == statuses


def test_the_first_suggestion_settles_most() -> None:
    report = identify(NODES, {"a": ("N1", "N2"), "b": ("N2", "N3")})
    first = report.suggestions[0]
    assert first.text == "measure a modality that sees N1 and N3 but not N2"
    assert (first.remaining.count, first.identified) == (1, tuple(NODES))
    one_left = identify(NODES, {"a": ("N1", "N2"), "b": ("N3",), "c": ("N2",)}).suggestions
    assert [s.text for s in one_left][:2] == [
        "label some samples for N1",
        "measure a modality that sees N1 but not N2 or N3",
    ]


def test_when_nodes_are_settled_edges_are_next() -> None:
    report = identify({"a": 2, "b": 2}, labels=("a", "b"))
    assert [s.kind for s in report.suggestions] == ["intervention", "intervention"]
    assert report.suggestions[0].n_open_edges == 0
    assert identify({"a": 2, "b": 2}, labels=("a", "b"), tiers=(("a",), ("b",))).suggestions == ()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sets(st.sampled_from(sorted(NODES)), min_size=1), max_size=3))
def test_suggestions_keep_what_they_promise(sets: list[set[str]]) -> None:
    mask = {f"m{i}": tuple(sorted(nodes)) for i, nodes in enumerate([*sets, set(NODES) - {"N1"}, {"N1"}])}
    for suggestion in identify(NODES, mask).suggestions:
        added = {
            "labels": {"mask": mask, "labels": suggestion.nodes},
            "modality": {"mask": {**mask, "new": suggestion.nodes}},
            "intervention": {"mask": mask, "environments": [f"do({node})" for node in suggestion.nodes]},
        }[suggestion.kind]
        report = identify(NODES, **added)  # type: ignore[arg-type]
        assert report.equivalent_labellings == suggestion.remaining.count
        assert report.identified_nodes == suggestion.identified


def test_a_large_problem_is_no_wait() -> None:
    report = identify({f"N{i}": 2 for i in range(12)})
    assert report.equivalent_labellings is None
    assert "at least 10^13007 labellings" in report.text()
    assert json.loads(to_json(report.to_dict()))["log10_equivalent_labellings"] > 13000


def test_text_says_at_least_and_what_is_assumed() -> None:
    text = identify(NODES).text()
    assert text.startswith("at least 840 labellings fit equally well")
    assert "every cell occurs" in text
    assert "meaningless: N1 and N2 are not identified" in text
    assert "24 left  measure a modality that sees N1 and N2 but not N3" in text
    assert identify(NODES, environments=["do(N1)"]).text().startswith("at most 72 labellings")
    assert identify(NODES, OVERLAPPING).text().startswith("one labelling remains")
    assert all(len(line) <= 140 for line in text.splitlines())


def test_the_dictionary_is_plain() -> None:
    plain = json.loads(to_json(identify(NODES, OVERLAPPING, environments=["do(?)", "soft(N1)"]).to_dict()))
    assert plain["equivalent_labellings"] == 1
    assert plain["identified_nodes"] == ["N1", "N2", "N3"]
    assert plain["mask"]["a"] == ["N1", "N2"]
    assert plain["environments"][0] == {"kind": "do", "target": None, "outcome": None}
    assert {"text", "kind", "nodes", "equivalent_labellings", "open_edges"} <= set(plain["suggestions"][0])
