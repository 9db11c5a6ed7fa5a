"""The linear structural equation model of a fit (`model.prior=linear_scm`): its arrays and its summary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from causalpima.inference.findings.arrays import GraphArrays
from causalpima.inference.findings.graph import Signs
from causalpima.inference.store.text import format_number, printable, shorten
from causalpima.models.latent_priors import EDGE_THRESHOLD, LinearSCM
from causalpima.models.program import CausalPIMA

__all__ = [
    "LinearModelArrays",
    "linear_model_arrays",
    "linear_model_sentence",
    "linear_model_summary",
    "unlike_labels_sentence",
]


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


# What a summary says of the linear structural equation model of a fit (`model.prior=linear_scm`).


_NAME_WIDTH = 24
_FOLLOWS = 0.5
"""Share of the variance of a node's labels that its block has to explain."""

_ACYCLIC = 1e-3
"""Below it the weights of no cycle of two or three have a product above 0.05."""


def linear_model_sentence(summary: Mapping[str, Any], signs: Signs | None = None) -> str:
    """What the linear model claims, and what that is worth; empty without one."""
    found, names = _linear_model(summary)
    if not found:
        return ""
    doubt = unlike_labels_sentence(summary)
    strength, arrow = np.array(found["strength"]), (signs or Signs()).arrow
    claimed = sorted(np.argwhere(found["adjacency"]).tolist(), key=lambda place: -abs(strength[tuple(place)]))
    edges = ", ".join(f"{names[i]} {arrow} {names[j]} {format_number(strength[i, j], 2)}" for i, j in claimed)
    cycles = f"; weights have cycles (h = {found['acyclicity']:.2g}): train longer"
    return (
        f"Linear model (weights above {found['threshold']}): {edges or 'no edge'}"
        f"{cycles if found['acyclicity'] > _ACYCLIC else ''}. It takes nodes to act linearly, and "
        f"{_ordered(found['ordered_levels'])}its edges are no evidence of causes.{doubt and f' {doubt}'}"
    )


def unlike_labels_sentence(summary: Mapping[str, Any]) -> str:
    """Nodes whose blocks do not follow their labels, and what that does to the linear model; empty without any.

    A block follows them that explains half the variance of the labels or more (`label_fit`).
    """
    found, names = _linear_model(summary)
    shares = found.get("label_fit", {}).values()
    unlike = [name for name, share in zip(names, shares, strict=False) if not (share or 0.0) >= _FOLLOWS]
    return f"Blocks of {', '.join(unlike)} do not follow the labels: the edges mean nothing." if unlike else ""


def _linear_model(summary: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """What the summary has of the model, and names of its nodes; nothing without one, or of a single node."""
    graph = summary.get("graph") or {}
    found = graph.get("linear_scm")
    if not found or len(graph["node_names"]) == 1:
        return {}, []
    return found, [shorten(printable(name), _NAME_WIDTH) for name in graph["node_names"]]


def _ordered(nodes: list[str]) -> str:
    """Nodes of more than two outcomes, the levels of which count as numbers."""
    if not nodes:
        return ""
    return f"levels of {', '.join(map(printable, nodes))} to be equidistant numbers in their order; "
