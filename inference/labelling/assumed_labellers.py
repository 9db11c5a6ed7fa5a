"""Clusters named by what is assumed and can't be tested: additive effects, or independent nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inference.labelling.additivity import Additive, additive_labellings, cluster_means
from inference.labelling.independence import TIE_WINDOW, chance_limit, total_correlation
from inference.labelling.labelling import Clusters, Labelling
from inference.labelling.labelling_search import (
    enumerate_labellings,
    node_outcomes,
    partition_codes,
    rename_towards,
)

__all__ = ["label_by_independence", "label_by_read_outs"]

_MOST_NOISE = 100.0
_MOST_LEFT = 0.05


def label_by_read_outs(
    clusters: Clusters, nodes: Mapping[str, int], values: np.ndarray, present: np.ndarray, names: Sequence[str]
) -> Labelling:
    """The labelling under which the nodes' effects on the read-outs come closest to adding up.

    No node is named where even the smallest residual is more than 100 times what chance leaves, and more than 5 % of
    the spread of the means: effects do not add up then.

    Args:
        clusters: The clusters of n samples.
        nodes: Outcomes per node by name.
        values: Read-outs of the samples that have them, `[m, F]`.
        present: Which samples these are, bool `[n]`.
        names: What the read-outs are of.

    Raises:
        ValueError: More labellings than can be searched, or read-outs that do not differ.
    """
    outcomes = tuple(nodes.values())
    means = cluster_means(clusters.responsibilities[present], values)
    found = additive_labellings(means, outcomes)
    least = float(found.residual.min())
    is_refuted = least > max(_MOST_NOISE * found.noise, _MOST_LEFT)
    details = {"read_outs": list(names), "n_read_outs": values.shape[1], "is_refuted": is_refuted, **_residuals(found)}
    labelling = _labelling(clusters, nodes, found, found.remaining, "read_outs", details)
    return replace(labelling, named_nodes=()) if is_refuted else labelling


def label_by_independence(clusters: Clusters, nodes: Mapping[str, int]) -> Labelling:
    """The labelling under which the nodes are closest to independence.

    Those within `TIE_WINDOW` of the least total correlation are told apart by how nearly the nodes' effects on the mean
    embedding add up. No node is named where even the least total correlation is more than chance allows.

    Args:
        clusters: The clusters.
        nodes: Outcomes per node by name.

    Raises:
        ValueError: More labellings than can be searched.
    """
    outcomes = tuple(nodes.values())
    every = enumerate_labellings(outcomes)
    dependence = total_correlation(clusters.responsibilities.sum(0, dtype=np.float64), every, outcomes)
    close = dependence <= dependence.min() + TIE_WINDOW
    means = cluster_means(clusters.responsibilities, clusters.embedding.astype(np.float64))
    found = additive_labellings(means, outcomes, every[close])
    limit = chance_limit(outcomes)
    details = {
        "total_correlation": float(dependence[close][found.best]),
        "chance_limit": limit,
        "runner_up_total_correlation": float(np.partition(dependence, 1)[1]) if len(every) > 1 else None,
        "window": TIE_WINDOW,
        **_residuals(found),
    }
    labelling = _labelling(clusters, nodes, found, np.ones(len(found.labellings), dtype=bool), "independence", details)
    is_refuted = len(nodes) > 1 and dependence.min() > limit
    return replace(labelling, named_nodes=()) if is_refuted else labelling


def _residuals(found: Additive) -> dict[str, Any]:
    return {"residual": float(found.residual.min()), "runner_up_residual": found.runner_up, "noise": found.noise}


def _labelling(
    clusters: Clusters,
    nodes: Mapping[str, int],
    found: Additive,
    remaining: np.ndarray,
    source: Any,
    details: Mapping[str, Any],
) -> Labelling:
    """The best labelling, outcomes numbered as the clusters are; named are the nodes that all others agree on."""
    outcomes = tuple(nodes.values())
    best = found.labellings[found.best]
    codes = partition_codes(node_outcomes(found.labellings[remaining], outcomes))
    mine = partition_codes(node_outcomes(best, outcomes))
    settled = [name for name, own in zip(nodes, mine, strict=True) if (codes == own).all(-1).any(-1).all()]
    mass = clusters.responsibilities.sum(0, dtype=np.float64)
    permutation = rename_towards(best, np.arange(len(mass)), outcomes, mass)
    return Labelling(permutation, source, settled, {**details, "n_remaining": int(remaining.sum())})
