"""The designed nodes of a configuration, with what their outcomes do to every modality."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inference.data.environments import observational_rows
from inference.data.multimodal import MultimodalData
from inference.design.effects import DesignedEffect, DesignedNode, designed_effect
from inference.labelling.labels import UNKNOWN
from inference.labelling.outcome_names import outcome_names
from inference.training.config import FitConfig
from inference.training.observed import ObservedLabels
from models.standardisation import Standardisation

__all__ = ["designed_nodes"]


def designed_nodes(
    config: FitConfig,
    labels: ObservedLabels | None,
    data: MultimodalData,
    split: np.ndarray,
    standardisation: Mapping[str, Standardisation],
) -> dict[int, DesignedNode]:
    """Every designed node by its position, from the training samples without interventions.

    Args:
        config: The configuration.
        labels: What labels tell of nodes; None: nothing.
        data: The samples.
        split: `train`, `validation` or `test` per sample.
        standardisation: Per modality, the way to the scale of the model.
    """
    rows = np.flatnonzero(observational_rows(split == "train", data.environment))
    return {
        list(config.nodes).index(node): _designed(node, config, data, rows, labels, standardisation)
        for node in config.knowledge.designed
    }


def _designed(
    node: str,
    config: FitConfig,
    data: MultimodalData,
    rows: np.ndarray,
    labels: ObservedLabels | None,
    standardisation: Mapping[str, Standardisation],
) -> DesignedNode:
    position = list(config.nodes).index(node)
    names = outcome_names(config.nodes, {} if labels is None else labels.levels)[position]
    if labels is None or node not in labels.variables:
        return DesignedNode(None, names, 0, len(rows))
    codes = labels.codes[rows, position]
    known = codes != UNKNOWN
    groups = None if data.groups is None else len(np.unique(data.groups[rows[known]]))
    found = {
        name: _effect(name, config, data, rows[known], codes[known], len(names), standardisation[name])
        for name in data.modalities
    }
    effects = {name: effect for name, effect in found.items() if effect is not None}
    return DesignedNode(labels.variables[node], names, int(known.sum()), len(rows), groups, effects)


def _effect(
    name: str,
    config: FitConfig,
    data: MultimodalData,
    rows: np.ndarray,
    codes: np.ndarray,
    n_outcomes: int,
    standardisation: Standardisation,
) -> DesignedEffect | None:
    is_categorical = config.modality[name].decoder.likelihood == "categorical"
    return designed_effect(data, name, rows, codes, n_outcomes, standardisation, config.seed, is_categorical)
