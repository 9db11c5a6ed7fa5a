"""What a summary says gave the nodes their meaning, where no labeller did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit

from causalpima.inference.clusters.identify import SideInformation, identification
from causalpima.inference.reporting.summary import summarise

UNNAMED: dict[str, Any] = {"source": "none", "named_nodes": [], "details": {}}


def labelling_with(mask: dict[str, tuple[str, ...]], labelling: dict[str, Any] | None = None) -> dict[str, Any]:
    fit = example_fit()
    first, second = fit.graph.node_names
    nodes = {first: 2, second: 3}
    named = {name: tuple({"1": first, "2": second}[node] for node in seen) for name, seen in mask.items()}
    cells = np.repeat(np.eye(6), 3, axis=0)
    codes = dict(zip((first, second), np.unravel_index(np.arange(6), (2, 3)), strict=True))
    levels = [np.eye(max(codes_of) + 1)[codes_of] for codes_of in _levels(named, codes)]
    found = identification(SideInformation(nodes, named), labelling, cells, levels)
    clear = np.eye(6)[np.arange(11) // 4]  # three of six cells, which no collapse is
    fit = example_fit(identifiability=found, labelling=labelling, history=[], responsibilities=clear)
    return dict(summarise(fit, 0.0)["labelling"])


def _levels(mask: dict[str, tuple[str, ...]], codes: dict[str, np.ndarray]) -> list[list[int]]:
    return [
        np.unique(np.stack([codes[node] for node in seen], 1), axis=0, return_inverse=True)[1].reshape(-1).tolist()
        for seen in mask.values()
    ]


def test_a_mask_that_identifies_nodes_is_what_names_them() -> None:
    names = list(example_fit().graph.node_names)
    assert labelling_with({"a": ("1",), "b": ("2",)}) | {"details": {}} == {
        "source": "mask",
        "named_nodes": names,
        "details": {},
    }


@pytest.mark.parametrize("mask", [{}, {"a": ("1", "2"), "b": ("1", "2")}])
def test_a_mask_that_identifies_nothing_names_nothing(mask: dict[str, tuple[str, ...]]) -> None:
    assert labelling_with(mask) == UNNAMED


def test_what_is_stronger_than_a_mask_is_what_named() -> None:
    names = {"source": "names", "named_nodes": list(example_fit().graph.node_names), "details": {"clusters": []}}
    found = labelling_with({"a": ("1",), "b": ("2",)}, names)
    assert (found["source"], found["named_nodes"]) == ("names", names["named_nodes"])
