"""How much a posterior over graphs depends on its score: BIC, and BDeu with equivalent sample sizes 1, 5, 10."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Literal

import numpy as np

from inference.graphs.enumerated_posterior import EdgeLogOdds
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.mixture_posterior import NodeSamples, mixture_posterior
from inference.graphs.posterior import GraphPosterior, Score

__all__ = ["SENSITIVITY_SCORES", "Verdict", "compared", "score_text", "sensitivity", "verdict"]

SENSITIVITY_SCORES = (Score(), Score("bdeu", 1.0), Score("bdeu", 5.0), Score("bdeu", 10.0))
"""Beside each other in every report of sensitivity."""

Verdict = Literal["none", "joined", "forward", "backward"]
"""No edge, one without a direction, i → j, j → i."""

_HALF = 0.5


def score_text(score: Score) -> str:
    """`BIC`, or `BDeu 5` with the equivalent sample size."""
    return "BIC" if score.equivalent_sample_size is None else f"BDeu {score.equivalent_sample_size:g}"


def sensitivity(
    samples: NodeSamples, knowledge: GraphKnowledge, known: GraphPosterior, edge_log_odds: EdgeLogOdds = 0.0
) -> dict[str, Any]:
    """The posterior by every score.

    Args:
        samples: The samples.
        knowledge: Which graphs are possible.
        known: The posterior by one of the scores, which is not computed again.
        edge_log_odds: The declared prior that it was computed with.

    Returns:
        As `compared` has it.
    """
    others = [score for score in SENSITIVITY_SCORES if score != known.score]
    found = [mixture_posterior(samples, score, knowledge, edge_log_odds) for score in others]
    return compared([known, *found])


def compared(posteriors: list[GraphPosterior]) -> dict[str, Any]:
    """Posteriors by several scores side by side.

    Returns:
        `scores`: per score (`score_text`), `edge_probability` and `compelled_probability` `[L, L]`; `changes`: pairs of
        nodes whose verdict is not the same by all of them.
    """
    ordered = sorted(posteriors, key=lambda found: found.score.equivalent_sample_size or 0.0)
    nodes = ordered[0].nodes
    return {
        "scores": {score_text(found.score): _tables(found) for found in ordered},
        "changes": [
            [nodes[i], nodes[j]]
            for i, j in combinations(range(len(nodes)), 2)
            if len({verdict(found, i, j) for found in ordered}) > 1
        ],
    }


def verdict(posterior: GraphPosterior, first: int, second: int) -> Verdict:
    """What is more probable than not of two nodes."""
    if posterior.adjacency_probability[first, second] <= _HALF:
        return "none"
    if posterior.compelled_probability[first, second] > _HALF:
        return "forward"
    return "backward" if posterior.compelled_probability[second, first] > _HALF else "joined"


def _tables(posterior: GraphPosterior) -> Mapping[str, list[list[float]]]:
    return {
        "edge_probability": np.asarray(posterior.edge_probability).tolist(),
        "compelled_probability": np.asarray(posterior.compelled_probability).tolist(),
    }
