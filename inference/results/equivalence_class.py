"""The equivalence class of graphs over nodes that have a meaning, by exact search: an entry of a summary's `graph`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.graphs.cpdag import cpdag
from inference.graphs.exact_search import ScoredClasses, score_classes
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.graphs.search_cost import is_quick
from inference.results.arrays import FitArrays
from inference.results.certainty import UNDECIDED_NATS

__all__ = ["equivalence_class"]

_MOST_NODES = 4


def equivalence_class(fit: FitArrays) -> dict[str, Any] | None:
    """The best class by BIC on the likelihood of the mixture, over the training samples without intervention.

    Args:
        fit: A fit whose nodes are all identified: under other names of the clusters it is another class.

    Returns:
        `cpdag`, row = cause, column = effect, 1 both ways where the direction is open; `node_names`; `gap_nats` to the
        next class; `near`, the others within 3 nats, the best first, each with `cpdag` and `behind_nats`; `score`,
        `bic`; `n_samples` and `n_independent`, the n of BIC: that of the groups where there are such. None for one
        node, more than four, or where the search would take more than about a second.
    """
    rows, outcomes = _rows(fit), fit.graph.log_joint.shape
    if not 2 <= len(outcomes) <= _MOST_NODES or not rows.any():
        return None
    joint = np.exp(fit.graph.log_joint.astype(np.float64))
    likelihood = log_likelihood_ratio(fit.responsibilities[rows], joint / joint.sum())
    if not is_quick(likelihood, outcomes):
        return None
    n_independent = len(likelihood) if fit.groups is None else len(np.unique(fit.groups[rows]))
    found = score_classes(likelihood, outcomes, n_independent)
    return {
        "cpdag": found.best.tolist(),
        "node_names": list(fit.graph.node_names),
        "gap_nats": found.gap,
        "near": _near(found),
        "score": "bic",
        "n_samples": len(likelihood),
        "n_independent": n_independent,
    }


def _near(found: ScoredClasses) -> list[dict[str, Any]]:
    behind = found.bic[0] - found.bic
    rivals = 1 + np.flatnonzero(behind[1:] < UNDECIDED_NATS)
    return [{"cpdag": cpdag(found.dags[rival]).tolist(), "behind_nats": float(behind[rival])} for rival in rivals]


def _rows(fit: FitArrays) -> np.ndarray:
    is_training: np.ndarray = fit.split == "train"
    return is_training if fit.environment is None else is_training & (fit.environment == 0)
