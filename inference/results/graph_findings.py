"""What a summary says of the graph that is shown: its edges in words, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.results.class_findings import Signs, class_sentence
from inference.results.edge_findings import (
    dependence_sentence,
    edge_numbers,
    edges,
    information_text,
    is_free,
    strengths_in_words,
)
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
    """What the listed edges rest on; empty where clusters are unnamed, which "Meaning" says."""
    found = shown_graph(summary)
    if found.basis == "strengths" and not (is_named(summary) and edges(summary)):
        return ""
    if found.basis == "strengths":
        words = strengths_in_words(summary["graph"], " above 0.5")
        return f"{words[0].upper()}{words[1:]} (no test of an edge; directions are not identified)"
    heading = _HEADINGS[found.basis].replace("->", (signs or Signs()).arrow)
    if any(edge.probability is not None for edge in found.edges):
        heading = heading.replace("with mutual", "with probability (joined, whichever way round) and mutual")
    return heading if found.edges else ""


def edge_texts(summary: Mapping[str, Any], width: int, signs: Signs | None = None) -> list[str]:
    """A text per edge, with no arrow that is not identified.

    Args:
        summary: The summary.
        width: Most characters of a name.
        signs: What stands between the nodes.
    """
    found, signs = shown_graph(summary), signs or Signs()
    if found.basis == "strengths":
        return [
            f"{shorten(edge.first, width)} {signs.line} {shorten(edge.second, width)}  {edge_numbers(edge)}"
            for edge in edges(summary)
        ]
    return [_text(found, edge, width, signs) for edge in found.edges]


def edges_remark(summary: Mapping[str, Any]) -> str:
    """That there is no edge, or no graph, where nothing else says so, or that a soft strength is no dependence."""
    basis = shown_graph(summary).basis
    if basis == "strengths" and is_free(summary["graph"]):
        return FREE
    if edge_texts(summary, 1):
        return dependence_sentence(summary) if basis == "strengths" else ""
    return "" if class_sentence(summary) else "no edge above 0.5" if basis == "strengths" else "no edge"


def _text(found: ShownGraph, edge: ShownEdge, width: int, signs: Signs) -> str:
    first, second = (shorten(found.names[node], width) for node in (edge.first, edge.second))
    joined = f"{first} {signs.arrow if edge.is_directed else signs.line} {second}"
    bits = [] if edge.bits is None else [information_text(edge.bits)]
    numbers = [*([] if edge.probability is None else [format_number(edge.probability, 2)]), *bits]
    return f"{joined}  {', '.join(numbers)}" if numbers else joined
