"""What a summary says of the linear structural equation model of a fit (`model.prior=linear_scm`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.results.class_findings import Signs
from inference.results.text import format_number, printable, shorten

__all__ = ["linear_model_sentence", "unlike_labels_sentence"]

_NAME_WIDTH = 24
_FOLLOWS = 0.5
"""Share of the variance of a node's labels that its block has to explain."""

_ACYCLIC = 1e-3
"""Below it the weights of no cycle of two or three have a product above 0.05."""


def linear_model_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """What the linear model claims, and what that is worth; empty without one."""
    found, names = _linear_model(summary)
    if not found:
        return ""
    doubt = unlike_labels_sentence(summary)
    strength, arrow = np.array(found["strength"]), (signs or Signs()).arrow
    claimed = sorted(np.argwhere(found["adjacency"]).tolist(), key=lambda place: -abs(strength[tuple(place)]))
    edges = ", ".join(f"{names[i]} {arrow} {names[j]} {format_number(strength[i, j], 2)}" for i, j in claimed)
    cycles = f"; weights have cycles (h = {found['acyclicity']:.2g}): train longer"
    return (
        f"Linear model (weights above {found['threshold']}): {edges or 'no edge'}"
        f"{cycles if found['acyclicity'] > _ACYCLIC else ''}. It takes nodes to act linearly, and "
        f"{_ordered(found['ordered_levels'])}its edges are no evidence of causes.{doubt and f' {doubt}'}"
    )


def unlike_labels_sentence(summary: Mapping[str, Any]) -> str:
    """Nodes whose blocks do not follow their labels, and what that does to the linear model; empty without any.

    A block follows them that explains half the variance of the labels or more (`label_fit`).
    """
    found, names = _linear_model(summary)
    shares = found.get("label_fit", {}).values()
    unlike = [name for name, share in zip(names, shares, strict=False) if not (share or 0.0) >= _FOLLOWS]
    return f"Blocks of {', '.join(unlike)} do not follow the labels: the edges mean nothing." if unlike else ""


def _linear_model(summary: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """What the summary has of the model, and names of its nodes; nothing without one, or of a single node."""
    graph = summary.get("graph") or {}
    found = graph.get("linear_scm")
    if not found or len(graph["node_names"]) == 1:
        return {}, []
    return found, [shorten(printable(name), _NAME_WIDTH) for name in graph["node_names"]]


def _ordered(nodes: list[str]) -> str:
    """Nodes of more than two outcomes, the levels of which count as numbers."""
    if not nodes:
        return ""
    return f"levels of {', '.join(map(printable, nodes))} to be equidistant numbers in their order; "
