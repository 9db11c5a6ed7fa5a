"""What a summary says of nodes that labels or names gave their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.results.text import format_number, printable

__all__ = ["labels_in_words", "naming_sentence", "withheld_sentence"]

_MOST_LISTED = 4
_GIVEN = {
    "names": "Names were given",
    "labels": "Labels were given",
    "environments": "Interventions were declared",
    "read_outs": "Read-outs were declared",
    "independence": "Independence was declared",
}


def withheld_sentence(summary: Mapping[str, Any]) -> str:
    """That nothing is claimed of nodes whose clusters are unclear; empty where they are clear."""
    labelling = summary.get("labelling") or {}
    withheld = (labelling.get("details") or {}).get("withheld")
    if not withheld or labelling.get("source") not in _GIVEN:
        return ""
    nodes = f" ({', '.join(map(printable, withheld['nodes']))})" if withheld["nodes"] else ""
    return f"{_GIVEN[labelling['source']]}{nodes}, but {withheld['reason']}. Nothing is claimed of the nodes."


def naming_sentence(summary: Mapping[str, Any]) -> str:
    """By what which nodes are named, and what stays arbitrary; empty where neither labels nor names named any."""
    labelling = summary.get("labelling") or {}
    named, source = [printable(name) for name in labelling.get("named_nodes") or ()], labelling.get("source")
    if source not in ("labels", "names") or not (named or source == "labels"):
        return ""
    details = labelling.get("details") or {}
    names = "names that were given to the clusters"
    by = names if source == "names" else labels_in_words(details)
    told = {*named, *map(printable, details.get("variables") or ())}
    others = [node for node in map(printable, summary.get("nodes", {})) if node not in told]
    sentences = (
        f"Named by {by}: {', '.join(named) or 'no node'}.",
        f"Which outcome of {', '.join(others)} is which is arbitrary." if others else "",
        _unsettled(details, [node for node in told if node not in named]),
        _without_label(details),
        _agreement(details.get("left_out_agreement") or {}),
        _by_chance(details.get("no_better_than_chance") or []),
        _unseen(details.get("levels_without_label") or {}),
    )
    return " ".join(sentence for sentence in sentences if sentence)


def labels_in_words(details: Mapping[str, Any]) -> str:
    """`labels of 540 training samples (36 of alloy, 540 of treatment)`; by node where they are not equally many."""
    total, by_node = details.get("n_labelled", "-"), details.get("n_labelled_by_node") or {}
    counts = ", ".join(f"{count} of {printable(node)}" for node, count in by_node.items())
    return f"labels of {total} training samples{f' ({counts})' if set(by_node.values()) - {total} else ''}"


def _unsettled(details: Mapping[str, Any], nodes: Sequence[str]) -> str:
    """Which clusters labels do not tell apart, and by how little the labelling is ahead of the next."""
    groups = details.get("unsettled_groups") or []
    if not groups or not nodes:
        return ""
    are = "is" if len(nodes) == 1 else "are"
    gap = format_number(details["gap"], 1)
    return (
        f"The labels do not settle which cluster is which of {_listed(groups)} (another labelling is {gap} labels "
        f"behind), so that {', '.join(sorted(nodes))} {are} not known for sure: label samples of these."
    )


def _without_label(details: Mapping[str, Any]) -> str:
    """How many joint outcomes no labelled sample has."""
    groups = details.get("groups_without_label") or []
    if not groups:
        return ""
    have, they = ("has", "it stands") if len(groups) == 1 else ("have", "they stand")
    return (
        f"{len(groups)} of {details['n_groups']} groups {have} no labelled sample ({_listed(groups)}): "
        f"what {they} for is a guess from the others."
    )


def _listed(groups: Sequence[str]) -> str:
    more = f"; and {len(groups) - _MOST_LISTED} more" if len(groups) > _MOST_LISTED else ""
    return "; ".join(map(printable, groups[:_MOST_LISTED])) + more


def _agreement(shares: Mapping[str, float]) -> str:
    """How many labels agree with clusters that the other labels named."""
    if not shares:
        return ""
    parts = ", ".join(f"{share:.0%} of {printable(node)}" for node, share in shares.items())
    return f"Labels left out of the naming agree with it in {parts}."


def _by_chance(nodes: Sequence[str]) -> str:
    """Nodes that are not named, since labels agree with them as with anything."""
    if not nodes:
        return ""
    return f"That is no better than chance for {', '.join(map(printable, nodes))}: the labels name no cluster by it."


def _unseen(levels: Mapping[str, list[str]]) -> str:
    """Levels of which no label was used."""
    words = [f"{printable(node)} = {printable(level)}" for node, found in levels.items() for level in found]
    return f"No label says {', '.join(words)}: what stands for it is a guess." if words else ""
