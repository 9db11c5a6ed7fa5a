"""What a summary says, in sentences and rows: the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from inference.results.text import format_count, format_number, is_number, printable

__all__ = [
    "Edge",
    "Score",
    "cluster_sentence",
    "edges",
    "labelling_sentence",
    "objective_sentence",
    "scores",
    "status_sentence",
    "time_sentence",
]

Summary = Mapping[str, Any]


class Edge(NamedTuple):
    """An edge of the graph, from cause to effect."""

    cause: str
    effect: str
    strength: float


class Score(NamedTuple):
    """A score with what chance and Bayes would reach; None where that is unknown or has no meaning."""

    name: str
    value: float | None
    chance: float | None = None
    ceiling: float | None = None


def status_sentence(summary: Summary) -> str:
    """`ok`, or what went wrong and what to do."""
    status = printable(summary.get("status", "unknown"))
    if status == "diverged":
        reason = printable(summary.get("reason", "the objective stopped being finite"))
        return f"DIVERGED: {reason}. There is no result; try a smaller learning rate or another seed."
    if status == "collapsed":
        clusters = summary.get("clusters", {})
        occupied = f"{clusters.get('n_occupied', '-')} of {clusters.get('n_requested', '-')} clusters"
        advice = "Trust neither clusters nor graph; train longer (more epochs, smaller batches) or try another seed."
        return f"COLLAPSED: {occupied} carry more than 0.5 % of the samples. {advice}"
    return status


def cluster_sentence(summary: Summary) -> str:
    """How many clusters there are of those asked for; empty where there is no result."""
    clusters = summary.get("clusters")
    if not clusters:
        return ""
    effective = format_number(clusters.get("effective_number"), 2)
    return f"{clusters['n_occupied']} of {clusters['n_requested']} occupied, effective number {effective}"


def edges(summary: Summary) -> list[Edge]:
    """Edges of strength above 0.5, strongest first."""
    graph = summary.get("graph", {})
    names = [printable(name) for name in graph.get("node_names", ())]
    found = [
        Edge(names[i], names[j], float(strength))
        for i, row in enumerate(graph.get("edge_strength", ()))
        for j, strength in enumerate(row)
        if is_number(strength) and strength > 0.5
    ]
    return sorted(found, key=lambda edge: -edge.strength)


def labelling_sentence(summary: Summary) -> str:
    """That other labellings of the clusters fit equally well; empty where there is only one."""
    count = summary.get("graph", {}).get("equivalent_labellings")
    if count is None or count < 2:
        return ""
    return (
        f"Clusters are unnamed: {format_count(count)} labellings of these cells fit equally well; "
        "the edges hold for this one."
    )


def scores(summary: Summary) -> list[Score]:
    """Scores against the known factors; empty without them."""
    found = summary.get("evaluation")
    if not found:
        return []
    chance = found.get("random_labelling_baseline") or {}
    nodes = found.get("assignment") or {}
    return [
        Score("cluster accuracy", found.get("cluster_accuracy"), None, found.get("bayes_ceiling")),
        Score("node accuracy, mean", found.get("node_accuracy_mean"), chance.get("mean")),
        Score("node accuracy, worst", found.get("node_accuracy_worst"), chance.get("worst")),
        *(
            Score(f"- {printable(factor)}" + (f", by {printable(nodes[factor])}" if nodes.get(factor) else ""), value)
            for factor, value in (found.get("node_accuracy") or {}).items()
        ),
        Score("NMI of clusters", found.get("nmi")),
        Score("ARI of clusters", found.get("ari")),
    ]


def objective_sentence(summary: Summary) -> str:
    """The objective per sample; empty where there is none."""
    objective = summary.get("objective")
    if not objective:
        return ""
    if objective.get("split") is None:
        return "none, since there was no epoch of joint training"
    value = format_number(objective.get("per_sample"), 2, "not finite")
    split = f", {objective['split']}" if objective.get("split") else ""
    return f"{value} nats per sample ({printable(objective.get('name', ''))}{split}; higher is better)"


def time_sentence(summary: Summary) -> str:
    """Seconds in all and per phase, and epochs."""
    seconds = summary.get("seconds", {})
    phases = ", ".join(f"{phase} {format_number(seconds.get(phase), 1)}" for phase in ("pretraining", "training"))
    return f"{format_number(seconds.get('total'), 1)} s ({phases}), {summary.get('epochs', '-')} epochs"
