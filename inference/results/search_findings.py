"""What a summary says of clusters that a search over labellings named, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from inference.results.certainty import gap_text
from inference.results.interventional_graph import interventional_graph
from inference.results.text import format_number, printable

__all__ = ["causal_graph_sentence", "search_sentence"]

Summary = Mapping[str, Any]

_UNTESTABLE = (
    "Warning: the assumption that effects add cannot be tested from the fit; where it fails, a wrong labelling looks "
    "as sure as a right one."
)


def search_sentence(summary: Summary) -> str:
    """What environments, read-outs or independence settled; empty where these did not name the clusters."""
    labelling = summary.get("labelling") or {}
    says = {"environments": _environments, "read_outs": _read_outs, "independence": _independence}
    source = labelling.get("source")
    if source == "environments" and not _all_named(summary):
        return " ".join(_open_environments(labelling))
    return " ".join(says[source](labelling)) if source in says else ""


def _all_named(summary: Summary) -> bool:
    return bool((summary.get("identifiability") or {}).get("is_named"))


def _open_environments(labelling: Summary) -> Iterator[str]:
    """What environments leave, without a word of causes: some node has no meaning."""
    yield f"The environments that were declared leave nodes open; known are: {_named(labelling)}."
    yield from _remaining(labelling["details"], "the environments do not tell apart")


def causal_graph_sentence(summary: Summary) -> str:
    """The directed graph that environments tell; empty without environments, and where some node is not named."""
    labelling = summary.get("labelling") or {}
    details = labelling.get("details") or {}
    if "targets" not in details or not _all_named(summary):
        return ""
    names = [printable(name) for name in summary.get("nodes", {})]
    found = np.array(details["class"]) if "class" in details else interventional_graph(details)
    arrows = list(_arrows(found, names))
    ahead = gap_text(details["graph_gap"], f"the next of {details['n_searched']['graphs']} graphs")
    under = "under this labelling, " if details.get("n_remaining", 1) > 1 else ""
    gap = f" ({under}{ahead})" if ahead else ""
    return (
        f"Directed graph by the interventions: {', '.join(arrows) or 'no edge'}{gap}; graph and p(N) of "
        "the model are this one, without interventions."
    )


def _arrows(graph: np.ndarray, names: list[str]) -> Iterator[str]:
    """Edges; a line where the graph has both directions."""
    for i, j in np.argwhere(graph):
        if not graph[j, i]:
            yield f"{names[i]} -> {names[j]}"
        elif i < j:
            yield f"{names[i]} -- {names[j]}"


def _environments(labelling: Summary) -> Iterator[str]:
    details = labelling["details"]
    targets = {printable(name): printable(node) for name, node in details["targets"].items()}
    searched = {printable(name) for name in details["targets"]} - {printable(name) for name in details["known_targets"]}
    upon = ", ".join(f"{name} upon {node}" + (" (found)" if name in searched else "") for name, node in targets.items())
    yield f"Named by interventions, {upon}: {_named(labelling)}."
    if searched:
        yield "Nodes whose target was found are known up to their names."
    yield from _remaining(details, "the environments do not tell apart")


def _read_outs(labelling: Summary) -> Iterator[str]:
    details = labelling["details"]
    declared = ", ".join(printable(name) for name in details["read_outs"])
    if details.get("is_refuted"):
        left, noise = (format_number(details[key], 4) for key in ("residual", "noise"))
        yield (
            f"Clusters are unnamed: the effects on {declared} do not add up under any labelling (residual {left}, by "
            f"chance {noise})."
        )
        return
    yield f"Named by effects that were declared to add up in {declared}, up to names: {_named(labelling)}."
    yield f"Residual {format_number(details['residual'], 4)}, next {format_number(details['runner_up_residual'], 4)}."
    yield from _remaining(details, "chance does not tell apart")
    yield _UNTESTABLE


def _independence(labelling: Summary) -> Iterator[str]:
    details = labelling["details"]
    found, limit = (format_number(details[key], 1) for key in ("total_correlation", "chance_limit"))
    if not labelling["named_nodes"] and details["total_correlation"] > details["chance_limit"]:
        yield (
            f"Clusters are unnamed: the declared independence is contradicted, {found} nats of total correlation under "
            f"the best labelling against {limit} by chance."
        )
        return
    yield f"Named by declared independence, up to names: {_named(labelling)}."
    yield f"Total correlation {found} nats (by chance up to {limit}); other labellings with a graph fit as well."
    yield from _remaining(details, "it does not tell apart")


def _named(labelling: Summary) -> str:
    return ", ".join(printable(name) for name in labelling["named_nodes"]) or "no node"


def _remaining(details: Summary, why: str) -> Iterator[str]:
    if details["n_remaining"] > 1:
        yield f"{details['n_remaining']} labellings remain that {why}: the rest of the nodes hold for one of them."
