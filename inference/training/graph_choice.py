"""Which graph a configuration asks for: learned by gradients, searched, or given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from inference.graphs.dags import is_acyclic
from inference.graphs.edge_text import edge_text, read_edge
from inference.graphs.knowledge import GraphKnowledge, graph_knowledge
from inference.graphs.learners import POSTHOC, check_learner
from inference.training.user_components import made, user_component
from models.graph import (
    BayesianGraph,
    DagmaGraph,
    EdgeConstraints,
    FreeGraph,
    HodgeGraph,
    NocurlGraph,
    NodeGraph,
    NotearsGraph,
    RelaxedGraph,
    TableGraph,
)
from models.torch_state import own_generators
from models.user_code import names_user_code

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["GRAPHS", "RELAXED", "check_graph", "edges_of", "given_edges", "known_of_graph", "make_graph"]

MOST_SEARCHED = 12
"""Up to so many nodes `exact` searches: the tables of all cells are the limit, not the search."""


MOST_RANDOM = 6
"""Up to so many nodes the guide may be `bayesian`: it looks at every order of them."""


def make_graph(config: FitConfig) -> NodeGraph:
    """The graph of a configuration, initialised from torch's global generator.

    `hodge` is the paper's; the hard graphs have tables in closed form: `exact` begins with the edges that are known.
    All draw what `hodge` draws, so that networks made after it are those of the seed.
    """
    learned = _hodge(config)
    if config.guide.graph == "bayesian":
        return BayesianGraph(config.outcomes, config.graph.temperature_start, constraints=_fixed(config))
    return learned if config.model.graph == "hodge" else _maker(config.model.graph)(config)


def _maker(kind: str) -> Callable[[FitConfig], NodeGraph]:
    """Of the table, or of a module of the user's: a class is made of the outcomes, a function of the configuration."""
    if not names_user_code(kind):
        return GRAPHS[kind]
    found = user_component("model.graph", kind, NodeGraph)
    return lambda config: made(f"model.graph {kind}", found, NodeGraph, (config,), (config.outcomes,))


def _fixed(config: FitConfig) -> EdgeConstraints:
    known = known_of_graph(config)
    return EdgeConstraints(*map(torch.from_numpy, (known.forbidden, known.required)))


def _hodge(config: FitConfig) -> NodeGraph:
    return HodgeGraph(config.outcomes, config.graph.temperature_start, config.graph.edge_rate, _fixed(config))


def _exact(config: FitConfig) -> NodeGraph:
    return TableGraph(config.outcomes, torch.from_numpy(known_of_graph(config).required))


def _given(config: FitConfig) -> NodeGraph:
    return TableGraph(config.outcomes, torch.from_numpy(given_edges(config)))


def _rival(kind: Callable[..., RelaxedGraph], config: FitConfig, **settings: Any) -> NodeGraph:
    """A graph that a penalty keeps from cycles; draws beside torch's global generator, which goes on as if it had not.

    Its tables are the first numbers of that generator from here on: another seed, other tables.
    """
    penalties = config.graph.edge_penalty, config.graph.table_penalty
    with own_generators([]):
        return kind(config.outcomes, *penalties, _fixed(config), **settings)


def _notears(config: FitConfig) -> NodeGraph:
    return _rival(NotearsGraph, config, tolerance=config.graph.acyclicity_tolerance)


def _posthoc(config: FitConfig) -> NodeGraph:
    return FreeGraph(config.outcomes)


_RELAXED: Mapping[str, Callable[[FitConfig], NodeGraph]] = {
    "notears": _notears,
    "dagma": partial(_rival, DagmaGraph),
    "nocurl": partial(_rival, NocurlGraph),
}

RELAXED = tuple(_RELAXED)
"""Graphs that a penalty keeps from cycles while they are trained."""

GRAPHS: Mapping[str, Callable[[FitConfig], NodeGraph]] = {
    "hodge": _hodge,
    "exact": _exact,
    "complete": _given,
    "empty": _given,
    "fixed": _given,
    **_RELAXED,
    **dict.fromkeys(POSTHOC, _posthoc),
}
"""By the name that `model.graph` has. A new one is a file in models/graph/ and a line here (docs/components.md)."""


def given_edges(config: FitConfig) -> np.ndarray:
    """Edges that the configuration gives, bool `[L, L]`: `complete` in the order of the nodes, `fixed` as they stand.

    Raises:
        ValueError: An edge of a node that is not there.
    """
    n_nodes, nodes = len(config.nodes), tuple(config.nodes)
    if config.model.graph == "complete":
        return np.triu(np.ones((n_nodes, n_nodes), dtype=bool), 1)
    return edges_of(config.model.edges, nodes)


def edges_of(texts: tuple[str, ...], nodes: tuple[str, ...], name: str = "model.edges") -> np.ndarray:
    """Edges as a matrix, bool `[L, L]`.

    Args:
        texts: `CAUSE->EFFECT` each.
        nodes: Names of the nodes.
        name: Of what holds them, for messages.

    Raises:
        ValueError: A text that is no edge, or an edge of a node that is not there.
    """
    edges = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for text in texts:
        cause, effect = read_edge(name, text, nodes)
        edges[nodes.index(cause), nodes.index(effect)] = True
    return edges


def known_of_graph(config: FitConfig) -> GraphKnowledge:
    """What is known of the graph over the nodes of a configuration."""
    return graph_knowledge(config.knowledge, tuple(config.nodes))


def check_graph(config: FitConfig) -> None:
    """Refuse a graph that is none, or that contradicts what is known.

    Raises:
        ValueError: No kind of graph, edges beside another kind, nodes that are not there, a cycle, too many nodes to
            search, edges that are known to be otherwise, or knowledge that a learner does not keep to.
    """
    kind = config.model.graph
    if kind not in GRAPHS and not names_user_code(kind):
        raise ValueError(
            f"model.graph: expected {', '.join(GRAPHS)}, fixed:FILE or module:Class, got {kind!r}; a file is read by "
            "the command line alone, in Python pass graph='fixed' and its edges"
        )
    if config.model.edges and kind != "fixed":
        raise ValueError(
            f"model.edges: expected none with model.graph {kind}, got {', '.join(config.model.edges)}; set model.graph "
            "to fixed"
        )
    if kind == "exact" and len(config.nodes) > MOST_SEARCHED:
        raise ValueError(
            f"model.graph: expected at most {MOST_SEARCHED} nodes to search exactly, got {len(config.nodes)}; "
            "leave it at hodge"
        )
    _check_random(config)
    if kind in POSTHOC:
        check_learner(kind, known_of_graph(config))
    if GRAPHS.get(kind) is _given:
        _check_given(given_edges(config), known_of_graph(config), kind)


def _check_random(config: FitConfig) -> None:
    """Refuse a random graph where there is none to be inferred."""
    if config.guide.graph == "point":
        return
    for holds, expected, got in (
        (config.model.graph == "hodge", "model.graph hodge", f"{config.model.graph}, a graph that is not random"),
        (len(config.nodes) <= MOST_RANDOM, f"at most {MOST_RANDOM} nodes", str(len(config.nodes))),
        (config.environments.kind == "none", "environments.kind none", config.environments.kind),
    ):
        if not holds:
            raise ValueError(f"guide.graph: expected {expected} with bayesian, got {got}; set guide.graph to point")


def _check_given(edges: np.ndarray, known: GraphKnowledge, kind: str) -> None:
    if not bool(is_acyclic(edges)):
        raise ValueError(f"model.edges: expected a graph without cycles, got {_listed(edges, known.nodes)}")
    surplus, missing = edges & known.forbidden, known.required & ~edges
    if surplus.any():
        raise ValueError(
            f"model.graph: expected {kind} to agree with what is known, got {_listed(surplus, known.nodes)}, known not "
            "to be there; leave one of the two out"
        )
    if missing.any():
        raise ValueError(
            f"model.graph: expected {kind} to agree with what is known, got no {_listed(missing, known.nodes)}, known "
            "to be there; leave one of the two out"
        )


def _listed(edges: np.ndarray, nodes: tuple[str, ...]) -> str:
    return ", ".join(edge_text(nodes[cause], nodes[effect]) for cause, effect in np.argwhere(edges))
