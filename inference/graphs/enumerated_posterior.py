r"""The posterior over graphs of up to five nodes, by scoring every one of them.

$$p(G \mid data) \propto p(G)\, e^{score(G)}, \qquad \log p(G) = \sum_{i \to j \in G} \lambda_{ij} + const$$

over the directed acyclic graphs that agree with what is known; λ = 0 is the uniform prior over them. A class of
equivalent graphs weighs as much as its graphs together, so that one with more graphs has more prior weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from inference.graphs.cpdag import class_codes, compelled
from inference.graphs.dags import all_dags
from inference.graphs.exact_search import unions
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.posterior import GraphPosterior, Score, WeighedClass
from inference.graphs.score_table import dag_scores

__all__ = [
    "CREDIBLE_MASS",
    "EdgeLogOdds",
    "Evidence",
    "credible_classes",
    "enumerated_posterior",
    "mean_graph",
    "weigh_dags",
]

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
