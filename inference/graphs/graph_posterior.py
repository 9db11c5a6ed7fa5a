"""The posterior over graphs from local scores, by the way of summing that fits the number of nodes."""

from __future__ import annotations

import numpy as np

from inference.graphs.dags import MOST_NODES
from inference.graphs.enumerated_posterior import EdgeLogOdds, Evidence, enumerated_posterior
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.large_posterior import large_posterior
from inference.graphs.posterior import GraphPosterior

__all__ = ["posterior_of_scores"]


def posterior_of_scores(
    scores: np.ndarray, knowledge: GraphKnowledge, evidence: Evidence, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """The posterior over the graphs that agree with what is known.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats (`family_scores`); -inf: not allowed.
        knowledge: Names of the nodes, and what is known of their graph.
        evidence: What the scores rest on.
        edge_log_odds: Log-odds of every edge of a declared prior, or `[L, L]`; 0: all possible graphs alike.

    Raises:
        ValueError: Another shape, or more than 20 nodes.
    """
    if len(scores) <= MOST_NODES:
        return enumerated_posterior(scores, knowledge, evidence, edge_log_odds)
    return large_posterior(scores, knowledge, evidence, edge_log_odds)
