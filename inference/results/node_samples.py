"""What the samples of a fit tell of its nodes: the likelihood behind every score of a graph."""

from __future__ import annotations

import numpy as np

from inference.graphs.group_weights import group_weights
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.graphs.mixture_posterior import NodeSamples
from inference.labelling.labels import allowed_cells
from inference.results.arrays import FitArrays

__all__ = ["node_likelihood", "node_samples", "observational_rows"]


def node_samples(fit: FitArrays) -> NodeSamples | None:
    """The training samples without intervention, with what labels tell of them; None where there are none.

    Args:
        fit: A finished fit.
    """
    rows = observational_rows(fit.split, fit.environment)
    if not rows.any():
        return None
    labels = None if fit.node_labels is None else fit.node_labels[rows]
    return NodeSamples(
        fit.graph.node_names,
        fit.graph.log_joint.shape,
        node_likelihood(fit.responsibilities[rows], fit.graph.log_joint, labels),
        group_weights(None if fit.groups is None else fit.groups[rows]),
    )


def observational_rows(split: np.ndarray, environment: np.ndarray | None) -> np.ndarray:
    """Training samples whose nodes follow p(N): under interventions they follow another distribution, bool `[n]`."""
    is_training: np.ndarray = split == "train"
    return is_training if environment is None else is_training & (environment == 0)


def node_likelihood(
    responsibilities: np.ndarray, log_joint: np.ndarray, labels: np.ndarray | None = None
) -> np.ndarray:
    """log p(x_n, labels of n | c) less log p(x_n), `[n, C]`; -inf in cells that the labels of a sample rule out.

    Where a label contradicts what the modalities say beyond what numbers hold, the label alone counts.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        log_joint: log p(N) that they were computed with, `[C_1, ..., C_L]`.
        labels: Outcome of each node, `[n, L]`, -1 where no label tells it; None: no labels.

    Raises:
        ValueError: Responsibilities that are no numbers.
    """
    joint = np.exp(log_joint.astype(np.float64))
    likelihood = log_likelihood_ratio(responsibilities, joint / joint.sum())
    if labels is None:
        return likelihood
    allowed = allowed_cells(labels, log_joint.shape)
    seen = np.where(allowed, likelihood, -np.inf)
    is_lost = ~np.isfinite(seen.max(1, keepdims=True))
    return np.where(is_lost & allowed, 0.0, seen)
