"""An environment marks the cells of one outcome; what remains, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import cells_of, relabellings, trivial_relabellings

from causalpima.inference.clusters.counting import count_labellings
from causalpima.inference.clusters.identify import identify

NODES = {"N1": 2, "N2": 2, "N3": 2}
MASKS = [
    {"a": ("N1", "N2", "N3")},
    {"a": ("N1", "N2"), "b": ("N2", "N3")},
    {"a": ("N1", "N2"), "b": ("N3",), "c": ("N2",)},
    {"a": ("N1", "N2"), "b": ("N3",)},
]


def by_trying(visible: list[set[int]], target: int) -> int:
    """Labellings under which the cells where the target has outcome 0 are those of one outcome of some node."""
    cells = cells_of((2, 2, 2))
    levels = {frozenset(np.flatnonzero(cells[:, node] == c).tolist()) for node in range(3) for c in range(2)}
    kept = relabellings((2, 2, 2), visible)
    marked = np.flatnonzero(cells[:, target] == 0)
    good = sum(frozenset(phi[marked].tolist()) in levels for phi in kept)
    keeps = {tuple(phi) for phi in kept.tolist()}
    trivial = sum(tuple(phi) in keeps for phi in trivial_relabellings((2, 2, 2)).tolist())
    assert good % trivial == 0
    return good // trivial


@pytest.mark.parametrize("mask", MASKS)
def test_an_unknown_target_leaves_as_much_as_a_known_one(mask: dict[str, tuple[str, ...]]) -> None:
    visible = [{int(node[1]) - 1 for node in nodes} for nodes in mask.values()]
    tried = [by_trying(visible, target) for target in range(3)]
    assert tried == [count_labellings((2, 2, 2), visible, labelled={target}) for target in range(3)]
    assert identify(NODES, mask, environments=["do(?)"]).equivalent_labellings == max(tried)
