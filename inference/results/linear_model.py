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
    """

    strength: np.ndarray
    adjacency: np.ndarray
    acyclicity: float


@torch.no_grad()
def linear_model_arrays(model: CausalPIMA) -> LinearModelArrays | None:
    """The linear model that was trained; None where another prior was."""
    prior = model.latent_prior
    if not isinstance(prior, LinearSCM):
        return None
    strength = prior.adjacency_weight().double().cpu().numpy()
    return LinearModelArrays(strength, prior.edges().long().cpu().numpy(), float(prior.violation()))


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
        "ordered_levels": [node for node, count in counts if count > 2],
    }
    return {"linear_scm": entry}
