"""The answer to a question, and its plain form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from inference.data.multimodal import Axis
from inference.queries.counterfactual import Counterfactual
from inference.queries.estimates import INTERVAL, Estimate
from inference.queries.graph_set import GraphSet, drawn_graph

__all__ = ["ModalityAnswer", "QueryAnswer"]

_MOST_DRAWN = 100


@dataclass(frozen=True)
class ModalityAnswer:
    """One modality in the units of the data.

    Attributes:
        kind: `image`, `curve` or `vector`.
        unit: Unit of the values; empty if there is none.
        axis: Positions of a curve, or None.
        is_categorical: Whether values are probabilities of categories, the last axis.
        mean: Mean of every element by scenario, `[*event]`; of categories their probabilities, `[*event, K]`.
        difference: Differences of means by what is subtracted from what.
        answers: Means of what is asked for every different answer of the graphs, `[A, *event]`.
    """

    kind: str
    unit: str
    axis: Axis | None
    is_categorical: bool
    mean: Mapping[str, Estimate]
    difference: Mapping[str, Estimate]
    answers: np.ndarray


@dataclass(frozen=True)
class QueryAnswer:
    """What would happen.

    Attributes:
        do: Outcome by node that is set.
        given: Outcome by node that is conditioned on.
        outcomes: Names of the outcomes of every node.
        graphs: The graphs that it is answered for.
        node_probabilities: Per node, by scenario: probabilities of its outcomes. `observed`; where something is set
            also as it is seen where the nodes happen to have these outcomes, and under the intervention.
        modalities: Per modality.
        answers: Numbers of the graphs that give the same answer, those of the most weight first, `[A]`.
        labels: Names of the scenarios: `observed`, `seen`, `do`.
        assumptions: What it rests on.
        notes: What is to be known besides.
        counterfactual: Of one sample, or None.
        draws: Draws under the intervention, or None.
        seed: Of draws and intervals.
        warnings: What makes numbers of it worth little; said before them.
    """

    do: Mapping[str, str]
    given: Mapping[str, str]
    outcomes: Mapping[str, tuple[str, ...]]
    graphs: GraphSet
    node_probabilities: Mapping[str, Mapping[str, Estimate]]
    modalities: Mapping[str, ModalityAnswer]
    answers: tuple[tuple[int, ...], ...]
    labels: Mapping[str, str]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    counterfactual: Counterfactual | None = None
    draws: xr.Dataset | None = field(default=None, repr=False, compare=False)
    seed: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def is_identified(self) -> bool:
        """Whether all graphs agree on every probability of a node."""
        found = [estimate for of_node in self.node_probabilities.values() for estimate in of_node.values()]
        return all(bool(estimate.is_identified.all()) for estimate in found)

    def to_plain(self) -> dict[str, Any]:
        """Nested dicts, lists and numbers (docs/query.md)."""
        return {
            "do": dict(self.do),
            "given": dict(self.given),
            "warnings": list(self.warnings),
            "is_identified": self.is_identified,
            "graphs": self._graphs(),
            "interval": INTERVAL,
            "node_probabilities": {node: self._outcomes(node) for node in self.outcomes},
            "modalities": {name: _modality(found) for name, found in self.modalities.items()},
            "counterfactual": None if self.counterfactual is None else _counterfactual(self.counterfactual, self),
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "seed": self.seed,
        }

    def _graphs(self) -> dict[str, Any]:
        names = tuple(self.outcomes)
        drawn = zip(self.graphs.dags[:_MOST_DRAWN], self.graphs.weights.tolist(), strict=False)
        return {
            "basis": self.graphs.basis,
            "sentence": self.graphs.sentence,
            "n_graphs": len(self.graphs.dags),
            "graphs": [{"edges": drawn_graph(dag, names), "weight": weight} for dag, weight in drawn],
        }

    def _outcomes(self, node: str) -> dict[str, Any]:
        return {
            outcome: {scenario: _number(found, place) for scenario, found in self.node_probabilities[node].items()}
            for place, outcome in enumerate(self.outcomes[node])
        }


def _number(found: Estimate, place: int) -> dict[str, Any]:
    return {key: (None if value is None else value[place]) for key, value in _estimate(found).items()}


def _estimate(found: Estimate) -> dict[str, Any]:
    """`value`, null where graphs disagree; the ends of the interval over the graphs, and of that of the sampling."""
    return {
        "value": np.asarray(found.value).tolist(),
        "low": np.asarray(found.low).tolist(),
        "high": np.asarray(found.high).tolist(),
        "lower": np.asarray(found.lower).tolist(),
        "upper": np.asarray(found.upper).tolist(),
    }


def _modality(found: ModalityAnswer) -> dict[str, Any]:
    return {
        "unit": found.unit,
        "mean": {scenario: _estimate(mean) for scenario, mean in found.mean.items()},
        "difference": {what: _estimate(difference) for what, difference in found.difference.items()},
    }


def _counterfactual(found: Counterfactual, answer: QueryAnswer) -> dict[str, Any]:
    return {
        "sample": found.sample,
        "name": found.name,
        "factual": [{"cell": list(cell), "probability": weight} for cell, weight in found.factual.items()],
        "is_sharp": found.is_sharp,
        "node_bounds": {
            node: {
                outcome: {"lower": float(lower[place]), "upper": float(upper[place])}
                for place, outcome in enumerate(answer.outcomes[node])
            }
            for node, (lower, upper) in found.nodes.items()
        },
        "residual_kept": {
            "factual": {name: mean.tolist() for name, mean in found.factual_means.items()},
            "cells": [
                {
                    "cell": list(cell.cell),
                    "lower": cell.lower,
                    "upper": cell.upper,
                    "means": {name: mean.tolist() for name, mean in cell.means.items()},
                }
                for cell in found.cells
            ],
        },
        "linear_model": None if found.linear is None else found.linear.to_plain(),
    }
