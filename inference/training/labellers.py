"""From side information in a configuration to the labeller of a run."""

from __future__ import annotations

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.graphs.knowledge import GraphKnowledge
from inference.labelling.assumed_labellers import label_by_independence, label_by_read_outs
from inference.labelling.environment_labeller import Environments
from inference.labelling.environment_search import target_maps
from inference.labelling.labelling import Clusters, Labeller, Labelling
from inference.labelling.labelling_search import check_number
from inference.labelling.soft_environments import soft_labelling
from inference.training.config import FitConfig
from inference.training.environments import declared_environments
from inference.training.graph_choice import known_of_graph
from inference.training.observed import observed_labels
from inference.training.read_outs import read_outs_of

__all__ = ["make_labeller"]


def make_labeller(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    """What names the clusters of a run; None where nothing does.

    Args:
        config: The configuration with its side information.
        data: The samples.
        training: Positions of the training samples in the data set, in the order in which a labeller sees them.

    Raises:
        ValueError: Side information that does not fit the data, or nodes with too many labellings to search.
    """
    strong = _by_labels(config, data, training)
    environments = declared_environments(config, data, training)
    if environments is not None and config.environments.kind == "soft":
        return _by_soft_environments(environments, known_of_graph(config), strong)
    if environments is not None:
        return _by_environments(environments, strong)
    return strong or _by_read_outs(config, data, training) or _by_independence(config)


def _by_labels(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    labels = observed_labels(config, data, training)
    return None if labels is None else lambda clusters: labels.labelling(clusters, training)


def _by_environments(environments: Environments, strong: Labeller | None) -> Labeller:
    """What the stronger side information leaves open is told by the environments."""
    if strong is None:
        environments.check()

    def labeller(clusters: Clusters) -> Labelling:
        return environments.labelling(clusters, None if strong is None else strong(clusters))

    return labeller


def _by_soft_environments(environments: Environments, knowledge: GraphKnowledge, strong: Labeller | None) -> Labeller:
    """Names come from elsewhere; the environments tell the graph under them."""
    target_maps(environments.known, len(environments.nodes))

    def labeller(clusters: Clusters) -> Labelling:
        return soft_labelling(environments, knowledge, clusters, None if strong is None else strong(clusters))

    return labeller


def _by_read_outs(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    if not config.read_outs:
        return None
    check_number(config.outcomes)
    values, present = read_outs_of(config.read_outs, data, training)
    names = [f"{name}={how}" for name, how in config.read_outs.items()]
    if (values == values[:1]).all():  # told now, not after the hours of pretraining
        raise ValueError(
            f"read_outs: expected quantities that differ between samples, got the same in all {len(values)} of "
            f"{', '.join(names)}; read off something else"
        )
    return lambda clusters: label_by_read_outs(clusters, config.nodes, values, present, names)


def _by_independence(config: FitConfig) -> Labeller | None:
    if not config.independent_nodes:
        return None
    check_number(config.outcomes)
    return lambda clusters: label_by_independence(clusters, config.nodes)
