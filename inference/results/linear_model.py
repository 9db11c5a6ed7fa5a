"""The linear structural equation model of a fit (`model.prior=linear_scm`): its arrays and its summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from inference.results.arrays import GraphArrays
from models.causal_pima import CausalPIMA
from models.latent_priors import LinearSCM
from models.latent_priors.linear_scm import EDGE_THRESHOLD

__all__ = ["LinearModelArrays", "linear_model_arrays", "linear_model_summary"]


@dataclass(frozen=True)
class LinearModelArrays:
    """z = Aᵀ z + ε on the blocks of the nodes; row = cause, column = effect.

    Attributes:
        strength: A, `[L, L]`.
        adjacency: The edges that it claims, `[L, L]` of 0 and 1, acyclic.
        acyclicity: h(A) = tr exp(A∘A) - L, 0 without cycles.
        label_fit: Per node the share of the variance of its labels that its block explains, `[L]`; NaN where labels do
            not vary.
    """

    strength: np.ndarray
    adjacency: np.ndarray
    acyclicity: float
    label_fit: np.ndarray


@torch.no_grad()
def linear_model_arrays(model: CausalPIMA, latent: np.ndarray, labels: np.ndarray | None) -> LinearModelArrays | None:
    """The linear model that was trained; None where another prior was.

    Args:
        model: The model.
        latent: Mean of q(Z|X), `[n, J]`.
        labels: Outcome of each node by labels, `[n, L]`, -1 where none tells it; None: no labels.
    """
    prior = model.latent_prior
    if not isinstance(prior, LinearSCM):
        return None
    strength = prior.adjacency_weight().double().cpu().numpy()
    level = prior.level(torch.as_tensor(latent).to(prior.weight)).double().cpu().numpy()
    codes = np.full(level.shape, -1) if labels is None else labels
    fit = np.array([_explained(*columns) for columns in zip(level.T, codes.T, strict=True)])
    return LinearModelArrays(strength, prior.edges().long().cpu().numpy(), float(prior.violation()), fit)


def _explained(level: np.ndarray, codes: np.ndarray) -> float:
    """1 - Σ (n - level)² / Σ (n - mean)² over the labelled samples."""
    told = codes >= 0
    if not told.any() or np.ptp(codes[told]) == 0:
        return float("nan")
    residual = np.square(codes[told] - level[told]).mean()
    return float(1 - residual / codes[told].var())


def linear_model_summary(graph: GraphArrays) -> dict[str, Any]:
    """The entry `linear_scm` of the graph in the summary; nothing where there is no such model."""
    found = graph.linear_model
    if found is None:
        return {}
    counts = zip(graph.node_names, map(len, graph.outcome_names), strict=True)
    entry = {
        "strength": found.strength.tolist(),
        "adjacency": found.adjacency.tolist(),
        "threshold": EDGE_THRESHOLD,
        "acyclicity": found.acyclicity,
        "label_fit": dict(zip(graph.node_names, found.label_fit.tolist(), strict=True)),
        "ordered_levels": [node for node, count in counts if count > 2],
    }
    return {"linear_scm": entry}
