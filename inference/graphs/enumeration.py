"""The best equivalence class of graphs by BIC, by scoring every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, class_codes, compelled
from causalpima.inference.graphs.hidden import count_parameters, fit_dags
from causalpima.inference.graphs.scores import GraphPosterior, Score, WeighedClass, dag_scores

__all__ = [
    "CREDIBLE_MASS",
    "EdgeLogOdds",
    "Evidence",
    "ScoredClasses",
    "counts_are_quick",
    "credible_classes",
    "enumerated_posterior",
    "is_quick",
    "mean_graph",
    "score_classes",
    "steps_to_rest",
    "unions",
    "weigh_dags",
]


_TIE = 1e-3


@dataclass(frozen=True)
class ScoredClasses:
    """All Markov equivalence classes over the nodes that hold a possible graph, the best first.

    Attributes:
        dags: A graph of each class, `[class, L, L]`.
        graphs: Each class as far as its graphs are possible, `[class, L, L]`, 1 both ways where these disagree on a
            direction: its CPDAG where nothing is known.
        log_likelihood: Its maximum, in nats, `[class]`.
        n_parameters: Free parameters, `[class]`.
        bic: `log_likelihood - n_parameters / 2 log n`, higher is better, `[class]`.
        joint: p(N) of each class at its maximum, `[class, C_1, ..., C_L]`.
        members: All possible graphs, `[G, L, L]`.
        class_of_member: Position of the class of each, `[G]`.
    """

    dags: np.ndarray
    graphs: np.ndarray
    log_likelihood: np.ndarray
    n_parameters: np.ndarray
    bic: np.ndarray
    joint: np.ndarray
    members: np.ndarray
    class_of_member: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """The best class, `[L, L]`."""
        first: np.ndarray = self.graphs[0]
        return first

    @property
    def gap(self) -> float | None:
        """How much better the best class is than the next, in nats of BIC; None where there is only one."""
        return float(self.bic[0] - self.bic[1]) if len(self.bic) > 1 else None

    @property
    def n_tied(self) -> int:
        """Number of classes that are as good as the best one, it included."""
        return int((self.bic > self.bic[0] - _TIE).sum())


def score_classes(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    n_samples: int | None = None,
    weights: np.ndarray | None = None,
    knowledge: GraphKnowledge | None = None,
) -> ScoredClasses:
    """Score every equivalence class of graphs over up to five nodes.

    Equivalent graphs have one maximum and one number of parameters, so that one graph stands for its class: 2, 11, 185,
    8782 classes of 2, 3, 4, 5 nodes.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; of samples of known cell, 0 there and
            -inf elsewhere.
        outcomes: Number of outcomes of each node.
        n_samples: The n of BIC; by default the sum of the weights.
        weights: How much each sample counts, `[n]` (`group_weights`); by default 1.
        knowledge: Which graphs are possible; by default all.

    Raises:
        ValueError: More than five nodes, or cells that do not fit them.
    """
    members = all_dags(len(outcomes))
    members = members if knowledge is None else members[knowledge.allows(members)]
    _, first, number = np.unique(class_codes(members), return_index=True, return_inverse=True)
    dags, n = members[first], n_samples or _total(log_likelihood, weights)
    fitted = fit_dags(log_likelihood, outcomes, dags, weights=weights)
    parameters = np.array([count_parameters(dag, outcomes) for dag in dags])
    bic = fitted.log_likelihood - parameters / 2 * np.log(n)
    order = np.lexsort((parameters, -bic))
    return ScoredClasses(
        dags[order],
        unions(members, number.reshape(-1))[order],
        fitted.log_likelihood[order],
        parameters[order],
        bic[order],
        fitted.joint[order].reshape(-1, *outcomes),
        members,
        np.argsort(order)[number.reshape(-1)],
    )


def unions(dags: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Every class as one graph: an edge is one way where all graphs of the class agree on it.

    Args:
        dags: `[G, L, L]`.
        number: Class of each graph, from 0 on, `[G]`.

    Returns:
        int64 `[class, L, L]`.
    """
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1))
    return np.asarray(np.maximum.reduceat(dags[order], starts, axis=0), dtype=np.int64)


def _total(log_likelihood: np.ndarray, weights: np.ndarray | None) -> float:
    return len(log_likelihood) if weights is None else float(weights.sum())


# The posterior over graphs of up to five nodes, by scoring every one of them.
#
# $$p(G \mid data) \propto p(G)\, e^{score(G)}, \qquad \log p(G) = \sum_{i \to j \in G} \lambda_{ij} + const$$
#
# over the directed acyclic graphs that agree with what is known; λ = 0 is the uniform prior over them. A class of
# equivalent graphs weighs as much as its graphs together, so that one with more graphs has more prior weight.


CREDIBLE_MASS = 0.95
"""Share of the mass that the set of classes carries."""

_NOTABLE = 1e-12

EdgeLogOdds = float | np.ndarray
"""λ of every edge alike, or `[L, L]`, row = cause."""


class Evidence(NamedTuple):
    """What scores rest on.

    Attributes:
        score: BIC or BDeu.
        n_samples: Rows behind the scores.
        n_independent: Independent ones among them, the n of BIC.
    """

    score: Score
    n_samples: int
    n_independent: int


class _Classes(NamedTuple):
    """Equivalence classes: the union of the graphs of each, bool `[class, L, L]`, its probability, and whose it is.

    Attributes:
        graph: Bool `[class, L, L]`.
        probability: `[class]`.
        of_dag: Class of every graph, `[G]`.
    """

    graph: np.ndarray
    probability: np.ndarray
    of_dag: np.ndarray


def enumerated_posterior(
    scores: np.ndarray, knowledge: GraphKnowledge, evidence: Evidence, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """The posterior from local scores.

    Args:
        scores: `[L, 2^L]` in nats, L at most 5.
        knowledge: Names of the nodes, and what is known of their graph.
        evidence: What the scores rest on.
        edge_log_odds: λ of every edge, or `[L, L]`.

    Raises:
        ValueError: More than five nodes.
    """
    dags = all_dags(len(scores))
    dags = dags[knowledge.allows(dags)]
    return weigh_dags(dags, dag_scores(scores, dags), knowledge, evidence, edge_log_odds)


def weigh_dags(
    dags: np.ndarray,
    scores: np.ndarray,
    knowledge: GraphKnowledge,
    evidence: Evidence,
    edge_log_odds: EdgeLogOdds = 0.0,
) -> GraphPosterior:
    """The posterior from scores of all graphs that are possible.

    Args:
        dags: All graphs that agree with what is known, `[G, L, L]`.
        scores: Their scores in nats, `[G]`.
        knowledge: Names of the nodes.
        evidence: What the scores rest on.
        edge_log_odds: λ of every edge, or `[L, L]`.
    """
    log_prior = (dags * edge_log_odds).sum((1, 2))
    joint = scores + log_prior
    log_evidence = float(logsumexp(joint))
    weights = np.exp(joint - log_evidence)
    classes = _classes(dags, weights)
    kept = np.argsort(-weights, kind="stable")[: int((weights > _NOTABLE).sum())]
    return GraphPosterior(
        nodes=knowledge.nodes,
        edge_probability=mean_graph(weights, dags),
        compelled_probability=mean_graph(classes.probability, compelled(classes.graph)),
        best=classes.graph[classes.of_dag[joint.argmax()]].astype(np.int64),
        classes=credible_classes(classes.graph, classes.probability),
        dags=dags[kept],
        weights=weights[kept] / weights[kept].sum(),
        log_marginal_likelihood=log_evidence - float(logsumexp(log_prior)),
        score=evidence.score,
        method="enumeration",
        n_samples=evidence.n_samples,
        n_independent=evidence.n_independent,
    )


def credible_classes(graphs: np.ndarray, probability: np.ndarray) -> tuple[WeighedClass, ...]:
    """The smallest set of classes that carries 95 % of the mass, the most probable first.

    Args:
        graphs: `[class, L, L]`, 1 both ways where the direction is open.
        probability: `[class]`, sum 1.
    """
    order = np.argsort(-probability, kind="stable")
    before = np.cumsum(probability[order]) - probability[order]
    kept = order[before < CREDIBLE_MASS]
    return tuple(WeighedClass(graphs[k].astype(np.int64), float(probability[k])) for k in kept)


def _classes(dags: np.ndarray, weights: np.ndarray) -> _Classes:
    """Classes with the union of their graphs: an edge is one way where all graphs of a class that are allowed agree."""
    number = class_codes(dags)
    return _Classes(unions(dags, number).astype(bool), np.bincount(number, weights), number)


def mean_graph(weights: np.ndarray, graphs: np.ndarray) -> np.ndarray:
    """How probable every edge is, `[L, L]`, from graphs `[G, L, L]` and their weights `[G]`, which sum to 1."""
    found: np.ndarray = np.tensordot(weights, graphs.astype(np.float64), 1)
    return np.clip(found, 0.0, 1.0)


# Whether all graphs are scored in about a second, told before they are.


_N_CLASSES = {1: 1, 2: 2, 3: 11, 4: 185}
"""Markov equivalence classes over so many nodes."""

_MOST_WORK = 1e9
"""Steps of EM times samples, cells and classes: 0.7 to 1.5 s of one core (docs/dag.md)."""

_MOST_SUMMED_NODES = 8
_MOST_CELLS = 2**10
_MOST_STEPS = 500
_REST = 1e-6


def is_quick(log_likelihood: np.ndarray, outcomes: Sequence[int], times: int = 1) -> bool:
    """Whether `score_classes` takes about a second at most; it is decided by the data alone, not by a clock.

    Where clusters overlap much, EM takes hundreds of steps instead of ten. How many is told by EM for p(N) without a
    graph, which costs what one class does.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node; five nodes and more take too long.
        times: How often all graphs are scored.
    """
    if len(outcomes) not in _N_CLASSES:
        return False
    return _rests_in_time(log_likelihood, log_likelihood.shape[0] * prod(outcomes) * _N_CLASSES[len(outcomes)] * times)


def counts_are_quick(log_likelihood: np.ndarray, outcomes: Sequence[int]) -> bool:
    """Whether counts behind the clusters (`deconvolve`), and sums over graphs from them, take about a second at most.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node; more than eight nodes take too long.
    """
    n_cells = prod(outcomes)
    if len(outcomes) > _MOST_SUMMED_NODES or n_cells > _MOST_CELLS:
        return False
    return _rests_in_time(log_likelihood, 2 * log_likelihood.shape[0] * n_cells)  # EM here, and then for the counts


def _rests_in_time(log_likelihood: np.ndarray, work: int) -> bool:
    """Whether EM takes so few steps, of so much work each, that it is done in time."""
    most = min(int(_MOST_WORK / work), _MOST_STEPS)
    return most >= _MOST_STEPS or steps_to_rest(log_likelihood, most) is not None


def steps_to_rest(log_likelihood: np.ndarray, most: int) -> int | None:
    """Steps of EM for p(N) without a graph until one adds less than 1e-6 nats; None where it takes more than `most`.

    Args:
        log_likelihood: `[n, C]`.
        most: Number of steps after which to give up.
    """
    weight = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
    share, before = np.full(weight.shape[1], 1 / weight.shape[1]), -np.inf
    for step in range(most):
        evidence = weight @ share
        now = float(np.log(evidence).sum())
        if now - before <= _REST:
            return step
        share, before = share * ((1 / evidence) @ weight) / len(weight), now
    return None
