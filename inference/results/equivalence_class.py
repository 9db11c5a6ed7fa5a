"""The equivalence class of graphs over nodes that have a meaning, by exact search: an entry of a summary's `graph`."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.graphs.exact_search import ScoredClasses
from inference.graphs.mixture_posterior import NodeSamples
from inference.results.certainty import UNDECIDED_NATS

__all__ = ["described_class"]


def described_class(found: ScoredClasses, samples: NodeSamples) -> dict[str, Any]:
    """The best class by BIC on the likelihood of the mixture.

    Args:
        found: All classes, the best first.
        samples: What they were scored by.

    Returns:
        `cpdag`, row = cause, column = effect, 1 both ways where the direction is open (and what is known of the graph
        leaves it open); `node_names`; `gap_nats` to the next class; `near`, the others within 3 nats, the best first,
        each with `cpdag` and `behind_nats`; `score`, `bic`; `n_samples` and `n_independent`, the n of BIC: that of the
        groups where there are such.
    """
    return {
        "cpdag": found.best.tolist(),
        "node_names": list(samples.nodes),
        "gap_nats": found.gap,
        "near": _near(found),
        "score": "bic",
        "n_samples": len(samples.log_likelihood),
        "n_independent": samples.n_independent,
    }


def _near(found: ScoredClasses) -> list[dict[str, Any]]:
    behind = found.bic[0] - found.bic
    rivals = 1 + np.flatnonzero(behind[1:] < UNDECIDED_NATS)
    return [{"cpdag": found.graphs[rival].tolist(), "behind_nats": float(behind[rival])} for rival in rivals]
