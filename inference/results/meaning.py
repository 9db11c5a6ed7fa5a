"""What the nodes of a fit mean, and how many other meanings fit equally well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.environment_findings import undeclared_environments
from inference.results.naming_findings import naming_sentence, withheld_sentence
from inference.results.search_findings import causal_graph_sentence, search_sentence
from inference.results.text import format_count, printable

__all__ = ["is_named", "meaning_sentence", "remaining_sentence"]

Summary = Mapping[str, Any]

_NAMING = "name the clusters (python -m inference.name)"


def is_named(summary: Summary) -> bool:
    """Whether every node has one meaning; only then is there anything to be said of causes."""
    return bool((summary.get("identifiability") or {}).get("is_named", False))


def meaning_sentence(summary: Summary) -> str:
    """What gave the nodes their meaning, what remains open, and what would settle most of it."""
    named = (
        withheld_sentence(summary) or naming_sentence(summary) or search_sentence(summary) or _mask_sentence(summary)
    )
    parts = (named, remaining_sentence(summary), _suggestions(summary), causal_graph_sentence(summary))
    return " ".join(part for part in parts if part)


def remaining_sentence(summary: Summary) -> str:
    """How many labellings fit equally well; empty where there is only one, or where a search has said so."""
    found = summary.get("identifiability")
    count = summary.get("graph", {}).get("equivalent_labellings") if found is None else found["equivalent_labellings"]
    if is_named(summary) or count == 1 or "graph" not in summary or _searched(summary):
        return ""
    return f"{_subject(summary)}: {_number(count, found)} fit equally well; what is shown by node is one of them."


def _searched(summary: Summary) -> bool:
    """Whether the labelling came from a search that names some node, and speaks for itself."""
    labelling = summary.get("labelling") or {}
    return "n_remaining" in (labelling.get("details") or {}) and bool(labelling.get("named_nodes"))


def _subject(summary: Summary) -> str:
    identified = [printable(node) for node in (summary.get("identifiability") or {}).get("identified_nodes", ())]
    if not identified:
        return "Clusters, unnamed"
    others = [name for name in map(printable, summary.get("nodes", {})) if name not in identified]
    return f"{_listed(identified)} identified, {', '.join(others)} not"


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"


def _number(count: int | None, found: Summary | None) -> str:
    if count is None:
        least = (found or {}).get("at_least", 1)
        return f"at least {format_count(least)} labellings" if least > 1 else "other labellings"
    return f"{format_count(count)} labelling{'s' if count != 1 else ''}"


def _mask_sentence(summary: Summary) -> str:
    found = summary.get("identifiability") or {}
    if not (found.get("before") or {}).get("mask") or not is_named(summary):
        return ""
    named = ", ".join(map(printable, found["identified_nodes"]))
    return f"Named by which modality sees which node, up to names of outcomes: {named}."


def _suggestions(summary: Summary) -> str:
    """The additions that settle most."""
    measures = (summary.get("identifiability") or {}).get("suggestions") or []
    if not measures:
        return ""
    found = [_NAMING, *undeclared_environments(summary), *map(printable, measures)]
    return f"What would settle most: {'; or '.join(found[:3])}."
