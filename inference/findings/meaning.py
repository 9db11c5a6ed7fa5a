"""What the nodes of a fit mean, and how many other meanings fit equally well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from causalpima.inference.findings.verdicts import gap_text
from causalpima.inference.store.text import format_count, format_number, printable

__all__ = [
    "causal_graph_sentence",
    "environments_sentence",
    "interventional_graph",
    "is_named",
    "labels_in_words",
    "meaning_sentence",
    "naming_sentence",
    "remaining_sentence",
    "search_sentence",
    "undeclared_environments",
    "withheld_sentence",
]


# What a summary says of nodes that labels or names gave their meaning.


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
        f"The labels do not settle which cluster is which of {_group_list(groups)} (another labelling is {gap} labels "
        f"behind), so that {', '.join(sorted(nodes))} {are} not known for sure: label samples of these."
    )


def _without_label(details: Mapping[str, Any]) -> str:
    """How many joint outcomes no labelled sample has."""
    groups = details.get("groups_without_label") or []
    if not groups:
        return ""
    have, they = ("has", "it stands") if len(groups) == 1 else ("have", "they stand")
    return (
        f"{len(groups)} of {details['n_groups']} groups {have} no labelled sample ({_group_list(groups)}): "
        f"what {they} for is a guess from the others."
    )


def _group_list(groups: Sequence[str]) -> str:
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


# The graph that interventions told, with no more directions than they told.


_SURE = 0.95


def interventional_graph(details: Mapping[str, Any]) -> np.ndarray:
    """The best graph, bool `[L, L]`, 1 both ways where the interventions leave the direction of an edge open.

    An edge has the direction of the best graph where graphs with the edge that way round have at least 95 % of the
    weight of those that have it.

    Args:
        details: Of the labelling, as a summary has them: `graph`, and `edge_probability` where graphs were weighed.
    """
    directed = np.array(details["graph"], dtype=bool)
    weight = np.array(details.get("edge_probability", directed), dtype=float)
    is_open = directed & (weight < _SURE * (weight + weight.T))
    both: np.ndarray = directed | is_open.T
    return both


# What a summary says of clusters that a search over labellings named, and how far to trust it.


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


# What a summary says of the environments of the samples, above all of those that were not made use of.


def environments_sentence(summary: Summary) -> str:
    """How many environments there are besides the observational one; empty without environments."""
    found = summary.get("environments") or {}
    count = found.get("n_besides_observational", 0)
    if not count:
        return ""
    use = {"do": "", "soft": ", soft: they name no clusters, and direct edges"}
    said = use.get(found["kind"], ", not declared: they name no clusters")
    return f"{count} environment{'s' if count != 1 else ''} besides the observational one{said}"


def undeclared_environments(summary: Summary) -> list[str]:
    """The suggestion to declare the environments, where they could name nodes and do not; else none."""
    found = summary.get("environments") or {}
    is_named = (summary.get("identifiability") or {}).get("is_named", False)
    if is_named or found.get("kind") in ("do", "soft") or not found.get("n_besides_observational"):
        return []
    return ["declare the environments by --environments.kind do, if each sets its node whatever its causes"]


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
    return f"{_node_list(identified)} identified, {', '.join(others)} not"


def _node_list(names: list[str]) -> str:
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
