"""What a summary says of the graph that a classical learner found after the fit, or why it found none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.class_findings import Signs, drawn_class
from inference.results.text import printable

__all__ = ["learned_sentence", "left_out_sentence"]

_NAMES: Mapping[str, str] = {"pc": "PC", "ges": "GES", "lingam": "LiNGAM"}


def learned_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """Method, settings and edges, or why the learner did not run; empty without a learner.

    Args:
        summary: The summary.
        signs: What stands between the nodes.
    """
    found = summary.get("graph", {}).get("posthoc")
    if not found:
        return left_out_sentence(summary)
    drawn = drawn_class(found["cpdag"], found["node_names"], signs or Signs())
    taken = "latent means" if found["method"] == "lingam" else "most probable cells"
    told = f"{_NAMES[found['method']]} after the fit ({found['settings']}; {taken} taken for certain): {drawn}."
    pairs = ", ".join(" and ".join(map(printable, pair)) for pair in found["conflicts"])
    return f"{told} It directs both ways, so that they are left open: {pairs}." if pairs else told


def left_out_sentence(summary: Mapping[str, Any]) -> str:
    """That the learner of the configuration did not run, and why; empty where it did, and without one."""
    found = summary.get("graph", {}).get("posthoc_left_out")
    return f"{_NAMES[found['method']]} after the fit did not run: {found['reason']}." if found else ""
