"""Counterfactuals of a linear structural equation model on Z (`model.prior=linear_scm`), and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inference.graphs.interventions import Setting
from inference.queries.decoded import decoded_at
from inference.queries.source import QuerySource
from inference.results.text import format_number, printable
from inference.training.surroundings import surroundings
from models.latent_priors import LinearSCM

__all__ = ["LinearCounterfactual", "linear_counterfactual"]

_LEAST_SAMPLES = 0.5


@dataclass(frozen=True)
class LinearCounterfactual:
    """What would have become of a sample by the linear model; pairs are as it is, and as it would have been.

    Attributes:
        edges: Cause, effect, and weight of the claimed edges, the heaviest first.
        levels: Per node, where its block says that it stands between its outcomes 0, 1, ..., by the labels that were
            learned; of nodes that are set, too, for which it tells how well their block follows the labels.
        means: Per modality the decoded mean in its units, `[*event]`.
        set_to: Number of the outcome of every node that is set.
    """

    edges: tuple[tuple[str, str, float], ...]
    levels: dict[str, tuple[float, float]]
    means: dict[str, tuple[np.ndarray, np.ndarray]]
    set_to: dict[str, int]

    @property
    def sentence(self) -> str:
        """What it rests on."""
        edges = ", ".join(f"{printable(a)} -> {printable(b)} {format_number(w, 2)}" for a, b, w in self.edges)
        return (
            f"linear model, in addition: nodes act linearly upon each other along the edges of model.prior=linear_scm "
            f"({edges or 'none'}), which were fitted under that assumption and are no evidence of causes; the sample "
            "keeps its noise"
        )

    def to_plain(self) -> dict[str, Any]:
        """Nested dicts, lists and numbers (docs/query.md)."""
        return {
            "prior": "linear_scm",
            "edges": [{"cause": a, "effect": b, "weight": weight} for a, b, weight in self.edges],
            "set_to": dict(self.set_to),
            "levels": {node: _pair(*found) for node, found in self.levels.items()},
            "means": {name: _pair(*(mean.tolist() for mean in found)) for name, found in self.means.items()},
        }


def _pair(factual: Any, counterfactual: Any) -> dict[str, Any]:
    return {"factual": factual, "counterfactual": counterfactual}


def linear_counterfactual(
    source: QuerySource, latent: np.ndarray, responsibilities: np.ndarray, do: Setting
) -> LinearCounterfactual | None:
    """What the linear model of a run says of a sample; None where the run has none.

    The noise of every node is that of the mean of q(Z|X). A node that is set gets the mean of its block over the
    training samples with that outcome, or keeps its place if it has that outcome: setting what is the case changes
    nothing. Effects follow along the claimed edges, and Z is decoded.

    Args:
        source: The fit.
        latent: Mean of q(Z|X), `[J]`.
        responsibilities: q(N|X), `[C]`.
        do: Outcome by node that would have been set.

    Raises:
        ValueError: No training sample has an outcome that would have been set.
    """
    fitted = source.fitted
    prior = fitted.model.latent_prior
    if not isinstance(prior, LinearSCM):
        return None
    with surroundings(fitted.device), torch.no_grad():
        as_it_is = torch.as_tensor(latent).to(prior.weight)
        factual = np.unravel_index(int(responsibilities.argmax()), source.sizes)
        values = {
            node: prior.blocks(as_it_is)[node]
            if outcome == factual[node]
            else _level_mean(source, prior, node, outcome)
            for node, outcome in do.items()
        }
        would_be = prior.counterfactual(as_it_is, values)
        levels = torch.stack([prior.level(as_it_is), prior.level(would_be)], dim=-1).double().tolist()
        means = [decoded_at(fitted, z, 0) for z in (as_it_is, would_be)]
    return LinearCounterfactual(
        _edges(source, prior),
        {node: (before, after) for node, (before, after) in zip(source.nodes, levels, strict=True)},
        {name: (means[0][name], means[1][name]) for name in fitted.modalities},
        {source.nodes[node]: int(outcome) for node, outcome in do.items()},
    )


def _level_mean(source: QuerySource, prior: LinearSCM, node: int, outcome: int) -> Tensor:
    """Mean of a node's block over the training samples, by q(N|X) that the node has an outcome, `[d]`."""
    joint = source.responsibilities[source.rows].reshape(-1, *source.sizes)
    weight = np.take(joint, outcome, axis=1 + node).reshape(len(joint), -1).sum(1)
    if weight.sum() < _LEAST_SAMPLES:
        name = source.nodes[node]
        raise ValueError(
            f"do: expected an outcome that some training sample has, for where the linear model puts it, got "
            f"{printable(name)}={printable(source.outcomes[name][outcome])}; set another one"
        )
    mean = torch.as_tensor(weight @ source.latent[source.rows] / weight.sum()).to(prior.weight)
    return prior.blocks(mean)[node]


def _edges(source: QuerySource, prior: LinearSCM) -> tuple[tuple[str, str, float], ...]:
    weight = prior.claimed_weight().detach().double().cpu().numpy()
    places = sorted(np.argwhere(weight != 0).tolist(), key=lambda place: -abs(weight[tuple(place)]))
    return tuple((source.nodes[cause], source.nodes[effect], float(weight[cause, effect])) for cause, effect in places)
