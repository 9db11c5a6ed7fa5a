"""What is said of the meaning of nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalpima.inference.clusters.identify import SideInformation, claimed, identification
from causalpima.inference.findings.meaning import is_named, meaning_sentence

NODES = {"N1": 2, "N2": 2, "N3": 2}
EVERY_CELL = np.repeat(np.eye(8), 3, axis=0)  # three samples in each, the fewest of a cell that is occupied
VAGUE, COLLAPSED = 0.05 + 0.6 * EVERY_CELL, np.eye(8)[np.arange(24) % 3]


def levels(nodes: tuple[int, ...]) -> np.ndarray:
    """Clear levels of a modality that sees these nodes: row n is the level of cell n."""
    outcomes = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1)[:, list(nodes)]
    return np.eye(2 ** len(nodes))[np.ravel_multi_index(tuple(outcomes.T), (2,) * len(nodes))]


def summary(
    known: SideInformation, labelling: dict[str, Any] | None = None, cells: np.ndarray = EVERY_CELL
) -> dict[str, Any]:
    seen = [levels(tuple(sorted(known.positions(nodes)))) for nodes in known.mask.values()]
    found = identification(known, labelling, cells, seen)
    told = {"source": "none"} if labelling is None else claimed(labelling, found, cells)
    return {"nodes": NODES, "identifiability": found, "graph": {}, "labelling": told}


def test_without_side_information_clusters_are_unnamed() -> None:
    told = summary(SideInformation(NODES))
    assert not is_named(told)
    assert meaning_sentence(told).startswith(
        "Clusters, unnamed: 840 labellings fit equally well; what is shown by node"
    )
    assert "What would settle most: " in meaning_sentence(told)


@pytest.mark.parametrize(
    ("mask", "begin"),
    [
        ({"a": ("N1", "N2"), "b": ("N2", "N3"), "c": ("N1", "N3")}, "Named by which modality sees which node"),
        ({"a": ("N1", "N2"), "b": ("N2", "N3")}, "N2 is identified, N1, N3 not: 4 labellings fit equally well"),
        (
            {"a": ("N1", "N2"), "b": ("N3",), "c": ("N2",)},
            "N2, N3 are identified, N1 not: 2 labellings fit equally well",
        ),
    ],
)
def test_a_mask_says_what_it_identifies(mask: dict[str, tuple[str, ...]], begin: str) -> None:
    assert meaning_sentence(summary(SideInformation(NODES, mask))).startswith(begin)


def test_a_cell_that_is_missing_leaves_more() -> None:
    mask = {"a": ("N1", "N2"), "b": ("N2", "N3"), "c": ("N1", "N3")}
    found = summary(SideInformation(NODES, mask))["identifiability"]
    missing = EVERY_CELL[:-3]
    recounted = summary(SideInformation(NODES, mask), cells=missing)["identifiability"]
    assert found["equivalent_labellings"] == 1
    assert recounted["equivalent_labellings"] != 840
    assert recounted["before"]["equivalent_labellings"] == 1


def test_labels_of_every_node_name_it() -> None:
    labelling = {"source": "labels", "named_nodes": list(NODES), "details": {"n_labelled": 41}}
    told = summary(SideInformation(NODES, labels=tuple(NODES)), labelling)
    assert is_named(told)
    assert meaning_sentence(told) == "Named by labels of 41 training samples: N1, N2, N3."


def test_what_a_search_left_is_told_as_it_says() -> None:
    details = {"n_remaining": 2, "read_outs": ["image=moments"], "residual": 0.1, "runner_up_residual": 0.2}
    labelling = {"source": "read_outs", "named_nodes": ["N1"], "details": details}
    told = summary(SideInformation(NODES), labelling)
    assert told["identifiability"]["equivalent_labellings"] == 2
    assert told["identifiability"]["identified_nodes"] == ["N1"]
    assert not is_named(told)


def test_clusters_that_are_not_clean_identify_nothing() -> None:
    mask = {"a": ("N1", "N2"), "b": ("N2", "N3"), "c": ("N1", "N3")}
    found = summary(SideInformation(NODES, mask), cells=VAGUE)
    assert not is_named(found)
    assert found["identifiability"]["identified_nodes"] == []
    assert found["identifiability"]["reason"].startswith("the clusters are not clean")


@pytest.mark.parametrize(
    ("cells", "source"),
    [(VAGUE, "read_outs"), (COLLAPSED, "read_outs"), (COLLAPSED, "names"), (COLLAPSED, "labels")],
)
def test_nothing_is_claimed_where_clusters_are_unclear(cells: np.ndarray, source: str) -> None:
    labelling = {"source": source, "named_nodes": list(NODES), "details": {"n_remaining": 1}}
    told = summary(SideInformation(NODES, labels=tuple(NODES)), labelling, cells)
    text = meaning_sentence(told)
    assert not is_named(told)
    assert "Named by" not in text
    assert "(N1, N2, N3), but the clusters " in text
    assert "Nothing is claimed of the nodes. Clusters, unnamed: other labellings fit equally well" in text


@pytest.mark.parametrize("source", ["names", "labels"])
def test_what_people_say_holds_for_clusters_that_overlap(source: str) -> None:
    labelling = {"source": source, "named_nodes": list(NODES), "details": {}}
    assert is_named(summary(SideInformation(NODES, labels=tuple(NODES)), labelling, VAGUE))
