"""The posterior over graphs whose nodes are seen only through a mixture with fixed components."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from inference.graphs.dags import all_dags
from inference.graphs.deconvolution import deconvolve
from inference.graphs.enumerated_posterior import Evidence, weigh_dags
from inference.graphs.exact_search import ScoredClasses
from inference.graphs.family_scores import table_family_scores
from inference.graphs.graph_posterior import EdgeLogOdds, posterior_of_scores
from inference.graphs.hidden_scores import scores_by_class
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.posterior import GraphPosterior, Score

__all__ = ["MOST_SCORED_NODES", "NodeSamples", "classes_posterior", "mixture_posterior"]

MOST_SCORED_NODES = 4
"""Up to so many nodes EM is run for every equivalence class; of more, counts are deconvolved once."""

_WHOLE = 1 - 1e-9


class NodeSamples(NamedTuple):
    """What samples tell of their nodes.

    Attributes:
        nodes: Names of the L nodes.
        outcomes: Number of outcomes of each.
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; -inf where a cell is ruled out.
        weights: How much each sample counts, `[n]`; None: 1.
    """

    nodes: tuple[str, ...]
    outcomes: tuple[int, ...]
    log_likelihood: np.ndarray
    weights: np.ndarray | None = None

    @property
    def n_independent(self) -> int:
        """The sum of the weights: samples, or groups of them."""
        return len(self.log_likelihood) if self.weights is None else round(float(self.weights.sum()))

    def evidence(self, score: Score) -> Evidence:
        """What scores of these samples rest on."""
        return Evidence(score, len(self.log_likelihood), self.n_independent)


def mixture_posterior(
    samples: NodeSamples, score: Score, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """The posterior over graphs; the components of the mixture, and what the clusters mean, are held.

    Up to four nodes, every graph is scored by the likelihood of the mixture (`hidden_scores`). Beyond, by the counts
    behind the clusters (`deconvolution`), whose share of the information stands in the diagnostics.

    Args:
        samples: What is known of the nodes of each sample.
        score: BIC or BDeu.
        knowledge: Which graphs are possible.
        edge_log_odds: Log-odds of every edge of a declared prior, or `[L, L]`; 0: all possible graphs alike.

    Raises:
        ValueError: A sample that belongs to no cell, or more nodes than can be scored.
    """
    if len(samples.nodes) > MOST_SCORED_NODES:
        return _by_counts(samples, score, knowledge, edge_log_odds)
    dags = all_dags(len(samples.nodes))
    dags = dags[knowledge.allows(dags)]
    scores = scores_by_class(samples.log_likelihood, samples.outcomes, dags, score, samples.weights)
    return weigh_dags(dags, scores, knowledge, samples.evidence(score), edge_log_odds)


def classes_posterior(
    found: ScoredClasses, samples: NodeSamples, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """`mixture_posterior` by BIC, from a search that scored every class already.

    Args:
        found: What `score_classes` found with the same samples and knowledge.
        samples: The samples.
        knowledge: Which graphs are possible.
        edge_log_odds: As for `mixture_posterior`.
    """
    scores, evidence = found.bic[found.class_of_member], samples.evidence(Score())
    return weigh_dags(found.members, scores, knowledge, evidence, edge_log_odds)


def _by_counts(
    samples: NodeSamples, score: Score, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds
) -> GraphPosterior:
    size = score.equivalent_sample_size or 0.0
    found = deconvolve(samples.log_likelihood, samples.outcomes, samples.weights, size)
    scores = table_family_scores(found.counts, score, knowledge)
    posterior = posterior_of_scores(scores, knowledge, samples.evidence(score), edge_log_odds)
    return dataclasses.replace(
        posterior,
        log_marginal_likelihood=posterior.log_marginal_likelihood if found.information_share > _WHOLE else None,
        diagnostics={**posterior.diagnostics, "information_share": found.information_share},
    )
