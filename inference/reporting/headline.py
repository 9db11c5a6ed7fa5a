"""What was found, in three sentences: which groups, what they mean and how they depend, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from causalpima.inference.clusters.clustering import UNCLEAR_ENTROPY
from causalpima.inference.findings.clusters import calibrations
from causalpima.inference.findings.graph import (
    ShownGraph,
    Signs,
    declared_arrows,
    drawn_class,
    is_declared,
    shown_graph,
)
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.restarts import agreeing_starts
from causalpima.inference.findings.verdicts import gap_text
from causalpima.inference.store.text import format_count, format_number, is_number, printable

__all__ = [
    "SIGNS",
    "graph_clause",
    "headline",
    "posterior_method",
]


# What the graph of a run says, in one clause, with how probable it is.


Summary = Mapping[str, Any]

_SURE = 0.99
_ASSUMPTIONS = "; an arrow assumes that there is no hidden common cause and no selection"

SIGNS = Signs("→", "←", "—")
"""What stands between two nodes on a page."""


def graph_clause(summary: Summary) -> str:
    """The graph and its certainty, of nodes that have a meaning."""
    graph, found = summary.get("graph", {}), shown_graph(summary)
    if len(graph.get("node_names", ())) == 1:
        return "there is one node, and so no graph"
    if found.basis == "given":
        return f"the graph was given, not found: {_drawn(found)}"
    if found.basis == "interventions":
        return f"by the interventions the graph is {_drawn(found)}{_ASSUMPTIONS}"
    if graph.get("posterior"):
        return _most_probable(graph["posterior"])
    if graph.get("equivalence_class"):
        return _best(graph["equivalence_class"])
    return "no graph was searched for"


def _best(found: Summary) -> str:
    """The class that an exact search found, and how far it is ahead."""
    ahead, rests = gap_text(found.get("gap_nats")), _assumed(found["cpdag"], found["node_names"])
    drawn = drawn_class(found["cpdag"], found["node_names"], SIGNS)
    return f"the best class of graphs is {drawn}{f' ({ahead})' if ahead else ''}{rests}"


def _assumed(graph: Sequence[Sequence[int]], nodes: Sequence[str]) -> str:
    """What an arrow rests on; empty where there is none."""
    matrix = np.array(graph, dtype=bool)
    declared = declared_arrows(matrix)
    arrows = [f"{printable(nodes[i])} {SIGNS.arrow} {printable(nodes[j])}" for i, j in np.argwhere(declared)]
    told = f"; the direction of {', '.join(arrows)} was declared, the data leave it open" if arrows else ""
    return (_ASSUMPTIONS if (matrix & ~matrix.T & ~declared).any() else "") + told


def _most_probable(posterior: Summary) -> str:
    """The class with the largest probability, and how its graphs were scored."""
    best = posterior["classes"][0]
    drawn = drawn_class(best["cpdag"], posterior["nodes"], SIGNS)
    probability = _probability(best["probability"])
    among = (
        "all classes of graphs that agree with what was declared" if is_declared(posterior) else "all classes of graphs"
    )
    rests = f"({posterior_method(posterior)}){_assumed(best['cpdag'], posterior['nodes'])}"
    return f"{drawn} has probability {probability} among {among} {rests}"


def _probability(value: float) -> str:
    return "above 0.99" if value > _SURE else format_number(value, 2)


def posterior_method(posterior: Summary) -> str:
    """`BDeu, equivalent sample size 1`, or `BIC`."""
    name = {"bic": "BIC", "bdeu": "BDeu"}.get(str(posterior.get("score")), printable(posterior.get("score", "")))
    size = posterior.get("equivalent_sample_size")
    return name if size is None else f"{name}, equivalent sample size {size:g}"


def _drawn(found: ShownGraph) -> str:
    return drawn_class(found.matrix(), found.names, SIGNS)


_MOST_FACTORS = 4
_BY = {
    "mask": "which modality sees which node",
    "names": "names that were given to the groups",
    "labels": "labels of some samples",
    "environments": "declared interventions",
    "read_outs": "effects that were declared to add up, which no fit can test",
    "independence": "declared independence, which no fit can test",
}


def headline(summary: Summary) -> list[str]:
    """Three sentences for a reader who reads no further; honest where there is nothing to be told."""
    if summary["status"] != "ok":
        return _failed(summary)
    return [_groups(summary), _meaning(summary), _certainty(summary)]


def _failed(summary: Summary) -> list[str]:
    return [
        f"The fit of {_samples(summary)} {printable(summary['status'])}.",
        "Neither groups nor nodes nor graph on this page are a result.",
        "Train longer (more epochs, smaller batches), try another seed or several starts (--restarts 4).",
    ]


def _groups(summary: Summary) -> str:
    found, n_samples = summary["clusters"], summary["n_samples"]
    sizes = [size for size in found["sizes"] if size]
    shares = f"; the largest has {_percent(max(sizes), n_samples)} of the samples, the smallest "
    shares += _percent(min(sizes), n_samples) if sizes else ""
    return (
        f"In {_samples(summary)}, {found['n_occupied']} of {found['n_requested']} groups that were asked for were found"
        f"{shares if len(sizes) > 1 else ''}."
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.0f} %" if count >= 0.01 * total else "under 1 %"


def _samples(summary: Summary) -> str:
    measured = listed([printable(name) for name in summary["modalities"]])
    return f"{summary['n_samples']} samples of {printable(summary['dataset'])}, measured as {measured}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _meaning(summary: Summary) -> str:
    nodes = [printable(node) for node in summary["nodes"]]
    if not is_named(summary):
        return _open(summary, nodes)
    by = _BY.get((summary.get("labelling") or {}).get("source", ""), "")
    if by:
        return f"What {listed(nodes)} mean{'s' if len(nodes) == 1 else ''} is told by {by}: {graph_clause(summary)}."
    return f"{listed(nodes)} {'numbers' if len(nodes) == 1 else 'number'} the groups: {graph_clause(summary)}."


def _open(summary: Summary, nodes: Sequence[str]) -> str:
    """That some or all nodes have no meaning, and so has no edge."""
    identified = [printable(node) for node in (summary.get("identifiability") or {}).get("identified_nodes", ())]
    others = [node for node in nodes if node not in identified]
    known = f"{listed(identified)} {_are(identified)} identified, {listed(others)} {_are(others)} not"
    arbitrary = f"{listed(others)} and every edge" if identified else "every node and every edge"
    return (
        f"{known if identified else 'The groups are unnamed'}: {_readings(summary)} as {listed(nodes)} fit equally "
        f"well{_alone(summary)}, so that {arbitrary} below {'are' if identified else 'is'} one arbitrary choice, and "
        "nothing is said of causes."
    )


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _readings(summary: Summary) -> str:
    found = summary.get("identifiability") or {}
    count = found.get("equivalent_labellings", summary.get("graph", {}).get("equivalent_labellings"))
    if count is not None and count > 1:
        return f"{format_count(count)} readings"
    least = found.get("at_least", 1)
    return f"at least {format_count(least)} readings" if least > 1 else "other readings"


def _alone(summary: Summary) -> str:
    return " (one kind of measurement cannot tell them apart)" if len(summary["modalities"]) == 1 else ""


def _certainty(summary: Summary) -> str:
    parts = [_clarity(summary), _starts(summary), _calibration(summary)]
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."


def _clarity(summary: Summary) -> str:
    entropy = summary["clusters"].get("entropy")
    if not is_number(entropy):
        return ""
    if entropy <= UNCLEAR_ENTROPY:
        return f"the groups are clearly apart (mean entropy of q(N|X) {entropy:.3f} nats, at most {UNCLEAR_ENTROPY})"
    return (
        "the groups are not clearly apart, some may be merged or split (mean entropy of q(N|X) "
        f"{entropy:.3f} nats, above {UNCLEAR_ENTROPY})"
    )


def _starts(summary: Summary) -> str:
    found = summary.get("restarts")
    if not found:
        return "whether other starts find the same groups was not tried (--restarts 4)"
    n_agreeing, n_compared = agreeing_starts(found)
    if not n_compared:
        return f"none of the other {found['n'] - 1} starts came to an end to compare with"
    mean = f"(mean ARI {found['agreement']['ari']:.2f})"
    if n_compared == 1:
        return f"the other start found {'the same' if n_agreeing else 'other'} groups {mean}"
    return f"{n_agreeing or 'none'} of {n_compared} other starts found the same groups {mean}"


def _calibration(summary: Summary) -> str:
    each = calibrations(summary.get("evaluation"))
    if not each:
        return "calibration is not known, as no truth is"
    judged = [one for one in each if not one.skipped][:_MOST_FACTORS]
    if not judged:
        return f"calibration is not known, as {each[0].skipped}"
    listing = ", ".join(f"{format_number(one.error)} against {one.factor}" for one in judged)
    expected = max(one.expected for one in judged)
    doubt = "" if all(one.verdict == "passes" for one in judged) else ": do not take q(N|X) at its word"
    return (
        f"the calibration error is {listing}, where {format_number(expected)} is expected of right probabilities{doubt}"
    )
