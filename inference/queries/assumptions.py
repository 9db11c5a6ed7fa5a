"""What an answer rests on, and what it is not worth, sentence by sentence: printed with every one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inference.queries.graph_set import GraphSet
from inference.results.linear_findings import unlike_labels_sentence
from inference.results.naming_findings import labels_in_words
from inference.results.text import format_number, printable

__all__ = ["FEW_SAMPLES", "assumptions_of", "counterfactual_assumptions", "warnings_of"]

FEW_SAMPLES = 5.0

_SOURCES = {
    "names": "names that a person gave to the clusters",
    "environments": "interventions that were declared",
    "read_outs": "the declaration that effects add up in the read-outs, which cannot be tested",
    "independence": "the declaration that nodes are independent",
    "mask": "the mask that says which modality sees which node",
}


def assumptions_of(summary: Mapping[str, Any], graphs: GraphSet | None, thinnest: float) -> list[str]:
    """Of a question: what the nodes mean, and if something is set also what the graph has to be.

    Args:
        summary: Of the run.
        graphs: The graphs; None where nothing is set.
        thinnest: Expected number of samples behind the thinnest row of a table that matters.
    """
    found = [_labelling(summary)]
    if graphs is not None:
        found += [
            "no hidden common cause: whatever acts upon two nodes is a node",
            "no selection: samples came into the data whatever their nodes",
            graphs.sentence,
            _positivity(thinnest),
        ]
    return found


def _labelling(summary: Mapping[str, Any]) -> str:
    labelling = summary.get("labelling") or {}
    source = labelling.get("source", "none")
    details = {"n_labelled": "some", **(labelling.get("details") or {})}
    words = labels_in_words(details) if source == "labels" else _SOURCES.get(source, "what was declared of them")
    nodes = ", ".join(map(printable, summary["graph"]["node_names"]))
    return f"the labelling: the nodes ({nodes}) mean what they are called, by {words}"


def _positivity(thinnest: float) -> str:
    few = ", which is few" if thinnest < FEW_SAMPLES else ""
    return (
        "positivity: every combination of causes that matters occurs; the thinnest row of a table rests on "
        f"{format_number(thinnest, 1)} expected samples{few}"
    )


def counterfactual_assumptions(is_sharp: bool) -> Iterator[str]:
    """What counterfactuals rest on besides: the first is of the bounds, the second of the modalities alone."""
    sharpness = "sharp" if is_sharp else "valid, true ones may be narrower"
    yield (
        "bounds of nodes: nothing more; they hold whatever the response functions of the nodes are "
        f"({sharpness}; the tables count as known)"
    )
    yield (
        "modalities, in addition: the sample keeps its standardised residual of Z within its cell; no data can tell "
        "whether it would, so this is what the model would draw, no bound"
    )


def warnings_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """What the fit warned of and an answer has to say again, before its numbers.

    Args:
        summary: Of the run.
    """
    if unlike := unlike_labels_sentence(summary):
        yield f"linear model (model.prior=linear_scm): {unlike}"
