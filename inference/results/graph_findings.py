"""What a summary says of the graph that is shown: its edges in words, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.class_findings import Signs, class_sentence
from inference.results.edge_findings import information_text, is_free
from inference.results.meaning import is_named
from inference.results.shown_graph import ShownEdge, ShownGraph, shown_graph
from inference.results.text import format_number, shorten

__all__ = ["FREE", "edge_texts", "edges_heading", "edges_remark"]

FREE = "no graph in the model: p(N) has a weight of its own for every cell"

_HEADINGS = {
    "given": "Edges of the graph that was given (cause -> effect), with mutual information",
    "interventions": "Edges by the interventions (cause -> effect), with mutual information",
    "class": "Edges of the class, with mutual information",
}


def edges_heading(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """What the listed edges rest on; empty where none is listed."""
    found = shown_graph(summary)
    if found.basis == "strengths" or not found.edges:
        return ""
    heading = _HEADINGS[found.basis].replace("->", (signs or Signs()).arrow)
    if any(edge.probability is not None for edge in found.edges):
        heading = heading.replace("with mutual", "with probability (joined, whichever way round) and mutual")
    return heading


def edge_texts(summary: Mapping[str, Any], width: int, signs: Signs | None = None) -> list[str]:
    """A text per edge that can be believed, with no arrow that is not identified.

    Soft strengths of the trained graph are none: they read as probabilities, and of nodes without a meaning every
    labelling has others.

    Args:
        summary: The summary.
        width: Most characters of a name.
        signs: What stands between the nodes.
    """
    found = shown_graph(summary)
    return [] if found.basis == "strengths" else [_text(found, edge, width, signs or Signs()) for edge in found.edges]


def edges_remark(summary: Mapping[str, Any]) -> str:
    """Why no edge is listed, where nothing else says so."""
    if shown_graph(summary).basis == "strengths":
        if is_free(summary["graph"]):
            return FREE
        return "" if is_named(summary) else "no edge is shown: nodes without a meaning have others in every labelling"
    return "" if edge_texts(summary, 1) or class_sentence(summary) else "no edge"


def _text(found: ShownGraph, edge: ShownEdge, width: int, signs: Signs) -> str:
    first, second = (shorten(found.names[node], width) for node in (edge.first, edge.second))
    joined = f"{first} {signs.arrow if edge.is_directed else signs.line} {second}"
    bits = [] if edge.bits is None else [information_text(edge.bits)]
    numbers = [*([] if edge.probability is None else [format_number(edge.probability, 2)]), *bits]
    return f"{joined}  {', '.join(numbers)}" if numbers else joined
