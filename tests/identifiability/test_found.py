"""What a finished fit leaves undetermined where labels are too few to settle the outcomes of a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalpima.inference.clusters.identify import SideInformation, claimed, identification

NODES = {"N1": 2, "N2": 2, "N3": 2}
EVERY_CELL = np.repeat(np.eye(8), 3, axis=0)  # three samples in each, the fewest of a cell that is occupied
LABELS = SideInformation(NODES, labels=("N1", "N2", "N3"))


def labelled(named: list[str], source: str = "labels") -> dict[str, Any]:
    return {"source": source, "named_nodes": named, "details": {}}


def found_with(known: SideInformation, labelling: dict[str, Any] | None) -> dict[str, Any]:
    return identification(known, labelling, EVERY_CELL, [])


def test_labels_that_do_not_settle_a_node_count_as_none() -> None:
    found = found_with(LABELS, labelled(["N1"]))
    fewer = found_with(SideInformation(NODES, labels=("N1",)), None)
    assert found["identified_nodes"] == ["N1"]
    assert not found["is_named"]
    assert found["equivalent_labellings"] == fewer["equivalent_labellings"]
    assert found["suggestions"] == fewer["suggestions"] != []
    assert found["before"]["equivalent_labellings"] == 1, "what was hoped for stays"


def test_labels_that_settle_all_identify_all() -> None:
    found = found_with(LABELS, labelled(list(NODES)))
    assert (found["is_named"], found["equivalent_labellings"]) == (True, 1)


VAGUE = 0.05 + 0.6 * EVERY_CELL
COLLAPSED = np.eye(8)[np.arange(24) % 3]


@pytest.mark.parametrize(
    ("cells", "reason", "source"),
    [
        (VAGUE, "the clusters are not clean", "environments"),
        (COLLAPSED, "the clusters coll", "environments"),
        (COLLAPSED, "the clusters coll", "labels"),
        (COLLAPSED, "the clusters coll", "names"),
    ],
)
def test_unclear_clusters_identify_nothing_whatever_is_given(cells: np.ndarray, reason: str, source: str) -> None:
    labelling = labelled(list(NODES), source)
    found = identification(LABELS, labelling, cells, [])
    told = claimed(labelling, found, cells)
    assert found["identified_nodes"] == told["named_nodes"] == []
    assert not found["is_named"]
    assert found["reason"].startswith(reason)
    assert told["details"]["withheld"] == {"nodes": list(NODES), "reason": found["reason"]}


def test_clear_clusters_keep_what_is_named() -> None:
    labelling = labelled(["N1"])
    assert claimed(labelling, found_with(LABELS, labelling), EVERY_CELL) == labelling


def test_names_replace_labels() -> None:
    assert found_with(LABELS, labelled(["N1"], "names"))["is_named"]
