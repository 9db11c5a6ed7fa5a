"""The entry `restarts` of a run's summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.clusters.agreement import adjacency_frequency, edge_frequency
from inference.results.restart_arrays import RestartArrays
from inference.results.restart_comparison import Comparison

__all__ = ["restart_summary"]


def restart_summary(
    comparison: Comparison, arrays: RestartArrays | None, mode: str, node_names: Sequence[str]
) -> dict[str, Any]:
    """What several starts found together (keys: docs/restarts.md).

    Args:
        comparison: The starts.
        arrays: The same as chains; None where all diverged.
        mode: How they were run.
        node_names: Names of the nodes.
    """
    summaries = [start.summary for start in comparison.starts]
    found: dict[str, Any] = {
        "n": len(summaries),
        "mode": mode,
        "chosen": comparison.chosen,
        "statuses": [summary["status"] for summary in summaries],
        "entropies": [quality.entropy for quality in comparison.qualities],
        "n_occupied": [quality.n_occupied for quality in comparison.qualities],
        "seconds": [summary["seconds"]["total"] for summary in summaries],
        "ari": comparison.ari.tolist(),
        "near_tied": comparison.near_tied,
        "disagreeing": comparison.disagreeing,
        "agreement": None if arrays is None else _agreement(comparison, arrays, node_names),
        "edge_frequency": None if arrays is None else _edges(arrays),
    }
    if any("evaluation" in summary for summary in summaries):
        scores = [summary.get("evaluation", {}) for summary in summaries]
        found["cluster_accuracies"] = [score.get("cluster_accuracy") for score in scores]
    return found


def _agreement(comparison: Comparison, arrays: RestartArrays, node_names: Sequence[str]) -> dict[str, Any]:
    """How far the other chains agree with the chosen one: means over them; None without another."""
    others = arrays.chain[1:]
    ari = comparison.ari[comparison.chosen, others]
    nodes = arrays.node_agreement[1:]
    return {
        "n_compared": len(others),
        "ari": float(ari.mean()) if len(others) else None,
        "nodes": {name: float(nodes[:, i].mean()) if len(others) else None for i, name in enumerate(node_names)},
    }


def _edges(arrays: RestartArrays) -> dict[str, Any] | None:
    """Shares of the chains whose best class of graphs has i -> j, and i and j joined in whichever way."""
    if arrays.cpdag is None:
        return None
    compelled = (arrays.cpdag != 0) & (arrays.cpdag.swapaxes(1, 2) == 0)
    return {
        "n_graphs": len(np.asarray(arrays.cpdag)),
        "directed": edge_frequency(compelled).tolist(),
        "joined": adjacency_frequency(arrays.cpdag).tolist(),
    }
