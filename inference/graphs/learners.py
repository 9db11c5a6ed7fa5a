"""Classical learners of causal-learn on nodes that are observed: PC, GES, and LiNGAM on continuous ones.

They take the values of the nodes for certain. Clusters are not: samples in a cell that is not theirs are to a learner
what labels with errors are (docs/rival_graphs.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from causalpima.inference.graphs.dags import GraphKnowledge, edge_text

__all__ = ["ALPHA", "POSTHOC", "LearnedGraph", "check_installed", "check_learner", "learn_graph"]

POSTHOC = ("posthoc:pc", "posthoc:ges", "posthoc:lingam")
"""Values of `model.graph` whose graph is learned after the fit."""

ALPHA = 0.05
"""Level of the tests of PC."""

_HEAD, _TAIL = 1, -1
_THRESHOLD = 0.01
_FEWEST_GES = 3
_SETTINGS: Mapping[str, str] = {
    "posthoc:pc": f"chi-square tests at {ALPHA}",
    "posthoc:ges": "score BDeu",
    "posthoc:lingam": f"DirectLiNGAM, weights above {_THRESHOLD}",
}


class LearnedGraph(NamedTuple):
    """What a learner found.

    Attributes:
        graph: int `[L, L]`, row = cause, column = effect, 1 both ways where the direction is open.
        settings: The learner's, in words.
        conflicts: Pairs that it directed both ways; they are open in `graph`.
    """

    graph: np.ndarray
    settings: str
    conflicts: tuple[tuple[int, int], ...]


def check_learner(kind: str, knowledge: GraphKnowledge) -> None:
    """Refuse what a learner does not keep to.

    Args:
        kind: One of `POSTHOC`.
        knowledge: What is known of the graph.

    Raises:
        ValueError: Edges that are known to be there; beside another learner than PC any knowledge.
    """
    nodes = knowledge.nodes
    refused = knowledge.required if kind == "posthoc:pc" else knowledge.required | knowledge.forbidden
    if refused.any():
        cause, effect = np.argwhere(refused)[0]
        none = "no edges known to be there" if kind == "posthoc:pc" else "no knowledge of the graph"
        raise ValueError(
            f"model.graph: expected {none} with {kind}, got {edge_text(nodes[cause], nodes[effect])}; causal-learn "
            "does not keep to it: leave it out, or set model.graph to exact"
        )


def check_installed(kind: str) -> None:
    """Refuse a learner without its library.

    Raises:
        ValueError: causal-learn is not installed.
    """
    if find_spec("causallearn") is None:
        raise ValueError(
            f"model.graph: expected causal-learn to be installed for {kind}, got none; pip install causal-learn (the "
            "extra learners)"
        )


def learn_graph(kind: str, values: np.ndarray, knowledge: GraphKnowledge) -> LearnedGraph:
    """The graph that a learner finds; nodes that do not vary have no edge.

    Args:
        kind: One of `POSTHOC`.
        values: Of every node, `[n, L]`: codes; numbers for LiNGAM.
        knowledge: What is known of the graph.

    Raises:
        ValueError: causal-learn is not installed, or as `check_learner`.
    """
    check_learner(kind, knowledge)
    check_installed(kind)
    varies = (values != values[:1]).any(0)
    marks = np.zeros((len(varies), len(varies)), dtype=int)
    part = np.ix_(varies, varies)
    if varies.sum() > 1:
        marks[part] = _LEARNERS[kind](values, varies, knowledge.forbidden[part])
    return _read(marks, _SETTINGS[kind])


def _read(marks: np.ndarray, settings: str) -> LearnedGraph:
    """Of a matrix whose entry `[j, i]` is the mark at j of the edge between i and j: 1 a head, -1 a tail."""
    head, tail = marks == _HEAD, marks == _TAIL
    both = head & head.T
    conflicts = tuple((int(i), int(j)) for i, j in np.argwhere(np.triu(both)))
    return LearnedGraph((head.T | (tail & tail.T)).astype(int), settings, conflicts)


def _pc(values: np.ndarray, varies: np.ndarray, forbidden: np.ndarray) -> np.ndarray:
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.search.ConstraintBased.PC import pc
    from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge

    nodes = [GraphNode(f"X{k + 1}") for k in range(len(forbidden))]  # as PC calls them itself
    known = BackgroundKnowledge()
    for cause, effect in np.argwhere(forbidden):
        known.add_forbidden_by_node(nodes[cause], nodes[effect])
    told = {"background_knowledge": known} if forbidden.any() else {}
    found = pc(values[:, varies], alpha=ALPHA, indep_test="chisq", show_progress=False, **told)
    return np.asarray(found.G.graph)


def _ges(values: np.ndarray, varies: np.ndarray, _: np.ndarray) -> np.ndarray:
    """With nodes that do not vary to make up three: the prior of the score takes the logarithm of 0 for two."""
    from causallearn.search.ScoreBased.GES import ges

    constant = np.zeros((len(values), max(_FEWEST_GES - values.shape[1], 0)), dtype=values.dtype)
    found = ges(np.concatenate([values, constant], axis=1), score_func="local_score_BDeu")["G"].graph
    return np.asarray(found)[: len(varies), : len(varies)][np.ix_(varies, varies)]


def _lingam(values: np.ndarray, varies: np.ndarray, _: np.ndarray) -> np.ndarray:
    from causallearn.search.FCMBased import lingam

    model = lingam.DirectLiNGAM()
    model.fit(values[:, varies])
    heads = np.abs(model.adjacency_matrix_) > _THRESHOLD
    return heads.astype(int) - heads.T.astype(int)


_LEARNERS: Mapping[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "posthoc:pc": _pc,
    "posthoc:ges": _ges,
    "posthoc:lingam": _lingam,
}
