"""What a summary says of nodes that labels or names gave their meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.text import printable

__all__ = ["naming_sentence"]


def naming_sentence(summary: Mapping[str, Any]) -> str:
    """By what which nodes are named, and what stays arbitrary; empty where neither labels nor names named any."""
    labelling = summary.get("labelling") or {}
    named = [printable(name) for name in labelling.get("named_nodes") or ()]
    if labelling.get("source") not in ("labels", "names") or not named:
        return ""
    details = labelling.get("details") or {}
    names = "names that were given to the clusters"
    by = names if labelling["source"] == "names" else f"labels of {details.get('n_labelled', '-')} training samples"
    others = [printable(name) for name in summary.get("nodes", {}) if printable(name) not in named]
    sentences = (
        f"Named by {by}: {', '.join(named)}.",
        f"Which outcome of {', '.join(others)} is which is arbitrary." if others else "",
        _agreement(details.get("agreement") or {}),
        _unseen(details.get("levels_without_label") or {}),
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _agreement(shares: Mapping[str, float]) -> str:
    """How many of the labels the clusters agree with."""
    if not shares:
        return ""
    return f"They agree with {', '.join(f'{share:.0%} of {printable(node)}' for node, share in shares.items())}."


def _unseen(levels: Mapping[str, list[str]]) -> str:
    """Levels of which no label was used."""
    words = [f"{printable(node)} = {printable(level)}" for node, found in levels.items() for level in found]
    return f"No label says {', '.join(words)}: what stands for it is a guess." if words else ""
