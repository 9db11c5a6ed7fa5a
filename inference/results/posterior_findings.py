"""What a summary says of the posterior over graphs, beside the class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from inference.results.class_findings import Signs, drawn_class
from inference.results.declared_arrows import is_declared
from inference.results.meaning import is_named
from inference.results.search_findings import causal_graph_sentence
from inference.results.text import format_number, printable

__all__ = ["DOUBTFUL", "posterior_sentence", "short_pairs"]

Summary = Mapping[str, Any]

DOUBTFUL = 0.05
"""Pairs that are joined with at least this probability are told, even where the best class lacks them."""

_COMMAND = "python -m inference.graph RUN"
_MOST_LISTED = 4


def posterior_sentence(summary: Summary, signs: Signs | None = None) -> str:
    """How probable the class is among all, what else may be joined, and whether the score decides.

    Empty where nodes have no meaning; where the posterior was left out, which command computes it.

    Args:
        summary: The summary.
        signs: What stands between the nodes.
    """
    graph = summary.get("graph", {})
    if not is_named(summary) or len(graph.get("node_names", ())) < 2:
        return ""
    if not graph.get("posterior"):
        is_told = causal_graph_sentence(summary) or graph.get("equivalence_class")
        return "" if is_told else f"Posterior over graphs: takes longer than a second; {_COMMAND} computes it."
    return " ".join(_sentences(graph, signs or Signs()))


def short_pairs(posterior: Summary) -> set[frozenset[str]]:
    """Pairs of nodes that have too many outcomes for the samples to say whether they are joined."""
    return {frozenset(pair) for pair in posterior.get("too_few_samples", ())}  # older runs do not say


def _sentences(graph: Summary, signs: Signs) -> Iterator[str]:
    found, searched = graph["posterior"], graph.get("equivalence_class") or {}
    top = found["classes"][0]
    share = format_number(top["probability"], 2)
    short = [" and ".join(map(printable, pair)) for pair in found.get("too_few_samples", ())]
    if short:
        yield f"Too few samples for the outcomes of {_listed(short)} to say whether they are joined."
    elif top["cpdag"] == searched.get("cpdag"):
        among = "all that agree with what was declared" if is_declared(found) else "all"
        yield f"Probability of this class among {among}: {share}."
    else:
        yield f"Most probable class of graphs (BIC): {drawn_class(top['cpdag'], found['nodes'], signs)} ({share})."
    doubtful = [f"{first} and {second} {format_number(p, 2)}" for first, second, p in _doubtful(found)]
    if doubtful:
        yield f"Not joined in it, yet with probability: {_listed(doubtful)}."
    changes = [" and ".join(map(printable, pair)) for pair in (found.get("sensitivity") or {}).get("changes", ())]
    if changes:
        yield f"Another score changes the verdict on {_listed(changes)}: {_COMMAND}."
    if graph.get("variational"):
        yield f"The guide over graphs joins {_listed(_guided(graph))} (too sure of directions: docs/mcmc.md)."


def _doubtful(found: Summary) -> list[tuple[str, str, float]]:
    """Pairs that the most probable class does not join, the most probable first."""
    joined, best = found["adjacency_probability"], found["classes"][0]["cpdag"]
    names = [printable(name) for name in found["nodes"]]
    pairs = [
        (names[i], names[j], float(joined[i][j]))
        for i, j in combinations(range(len(names)), 2)
        if joined[i][j] >= DOUBTFUL
        and not (best[i][j] or best[j][i])
        and {found["nodes"][i], found["nodes"][j]} not in short_pairs(found)
    ]
    return sorted(pairs, key=lambda pair: -pair[2])


def _guided(graph: Summary) -> list[str]:
    """How probable every pair is joined by `--guide.graph bayesian`."""
    edge, names = graph["variational"]["edge_probability"], [printable(name) for name in graph["node_names"]]
    pairs = combinations(range(len(names)), 2)
    return [f"{names[i]} and {names[j]} with {format_number(edge[i][j] + edge[j][i], 2)}" for i, j in pairs]


def _listed(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _MOST_LISTED} more" if len(texts) > _MOST_LISTED else ""
    return "; ".join(texts[:_MOST_LISTED]) + more
