"""The graphs that a question is answered for: all that the fit does not tell apart, or carries with notable weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from inference.graphs.class_members import class_members
from inference.graphs.dags import is_acyclic
from inference.results.interventional_graph import interventional_graph
from inference.results.meaning import is_named
from inference.results.search_findings import causal_graph_sentence
from inference.results.text import printable

__all__ = ["GraphSet", "drawn_graph", "graph_set", "no_graph"]

GraphBasis = Literal["none", "one node", "given", "interventions", "posterior", "class"]
_MOST_CLASSES = 50
_MOST_GRAPHS = 2000


class GraphSet(NamedTuple):
    """Graphs and what they rest on.

    Attributes:
        dags: `[G, L, L]`, row = cause, column = effect.
        weights: Of the graphs, `[G]`, sum 1; the same within an equivalence class.
        class_of: Number of the equivalence class of each graph, `[G]`: these have the same p(N).
        basis: Where they come from.
        sentence: The same for people, as an assumption.
    """

    dags: np.ndarray
    weights: np.ndarray
    class_of: np.ndarray
    basis: GraphBasis
    sentence: str


def graph_set(summary: Mapping[str, Any], given: np.ndarray | None = None) -> GraphSet:
    """The graphs of a finished fit whose nodes are named.

    A graph that was given comes first, then what interventions told, then the posterior over graphs, then the best
    equivalence class, with those that it is not clearly ahead of.

    Args:
        summary: Of the fit.
        given: The graph that the fit was told, `[L, L]`; None: it was told none.

    Raises:
        ValueError: None was searched.
    """
    graph, n_nodes = summary["graph"], len(summary["graph"]["node_names"])
    if n_nodes == 1:
        return _of([(np.zeros((1, 1, 1), dtype=np.int8), 1.0)], "one node", "there is one node, and no graph")
    if given is not None:
        return _of([(given[None].astype(np.int8), 1.0)], "given", "the graph is the one that was given")
    if is_named(summary) and causal_graph_sentence(summary):
        return _of_interventions(summary)
    if graph.get("posterior"):
        return _of_posterior(graph["posterior"])
    if graph.get("equivalence_class"):
        return _of_class(graph["equivalence_class"])
    raise ValueError(
        f"graph: expected a run with a searched graph, got {n_nodes} nodes without one; a posterior over graphs is "
        "computed for up to five nodes (docs/dag.md), use fewer"
    )


def no_graph(n_nodes: int) -> GraphSet:
    """For what needs none: one graph with all edges, which allows every p(N)."""
    complete = np.triu(np.ones((1, n_nodes, n_nodes), dtype=np.int8), 1)
    return _of([(complete, 1.0)], "none", "no graph: nothing is set")


def drawn_graph(dag: np.ndarray, names: Sequence[str]) -> str:
    """`A -> B, B -> C`."""
    edges = [f"{printable(names[i])} -> {printable(names[j])}" for i, j in np.argwhere(dag)]
    return ", ".join(edges) or "no edge"


def _of(classes: Sequence[tuple[np.ndarray, float]], basis: GraphBasis, sentence: str) -> GraphSet:
    """From members and weight of every class."""
    weights = np.concatenate([np.full(len(members), weight / len(members)) for members, weight in classes])
    class_of = np.repeat(np.arange(len(classes)), [len(members) for members, _ in classes])
    return GraphSet(
        np.concatenate([members for members, _ in classes]), weights / weights.sum(), class_of, basis, sentence
    )


def _of_interventions(summary: Mapping[str, Any]) -> GraphSet:
    matrix = interventional_graph(summary["labelling"]["details"])
    dags = _orientations(matrix)
    classes = [(np.stack([dag]), 1.0 / len(dags)) for dag in dags]
    return _of(classes, "interventions", f"the graph is the one that the interventions told{_which(len(dags))}")


def _which(count: int) -> str:
    return "" if count == 1 else f", which leave {count} ways to direct it"


def _orientations(graph: np.ndarray) -> list[np.ndarray]:
    """All acyclic ways to direct the edges that are open."""
    pairs = [(int(i), int(j)) for i, j in np.argwhere(np.triu(graph & graph.T))]
    found = []
    for flips in product((False, True), repeat=len(pairs)):
        dag = (graph & ~graph.T).astype(np.int8)
        for (i, j), flip in zip(pairs, flips, strict=True):
            dag[(j, i) if flip else (i, j)] = 1
        if bool(is_acyclic(dag)):
            found.append(dag)
    return found


def _of_posterior(found: Mapping[str, Any]) -> GraphSet:
    """The classes that carry 95 %, at most 50 of them and no more after 2000 graphs."""
    classes: list[tuple[np.ndarray, float]] = []
    for entry in found["classes"][:_MOST_CLASSES]:
        if sum(len(members) for members, _ in classes) < _MOST_GRAPHS:
            classes.append((class_members(np.array(entry["cpdag"])), float(entry["probability"])))
    mass = sum(weight for _, weight in classes)
    count = sum(len(members) for members, _ in classes)
    sentence = (
        f"the graph is one of {_counted(count, 'graph')} in {_counted(len(classes), 'equivalence class')} that carry "
        f"{mass:.1%} of the posterior{_knowledge(found)}"
    )
    return _of(classes, "posterior", sentence)


def _knowledge(found: Mapping[str, Any]) -> str:
    declared = any((found.get("knowledge") or {}).values())
    return ", given what was declared of the graph" if declared else ""


def _of_class(found: Mapping[str, Any]) -> GraphSet:
    """The best class, and those within 3 nats of BIC, which weigh by it."""
    rivals = [(np.array(rival["cpdag"]), float(rival["behind_nats"])) for rival in found.get("near") or []]
    weighed = [(np.array(found["cpdag"]), 0.0), *rivals]
    classes = [(class_members(graph), float(np.exp(-behind))) for graph, behind in weighed]
    count = sum(len(members) for members, _ in classes)
    which = "the best equivalence class" if len(classes) == 1 else f"the best {len(classes)} equivalence classes"
    sentence = f"the graph is one of {_counted(count, 'graph')} of {which} by exact search (BIC)"
    return _of([(members, weight * len(members)) for members, weight in classes], "class", sentence)


def _counted(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"
