"""From side information in a configuration to the labeller of a run."""

from __future__ import annotations

import numpy as np

from inference.clusters.labelling import Labeller
from inference.data.multimodal import MultimodalData
from inference.training.config import FitConfig
from inference.training.observed import observed_labels

__all__ = ["make_labeller"]


def make_labeller(config: FitConfig, data: MultimodalData, training: np.ndarray) -> Labeller | None:
    """What names the clusters of a run; None where nothing does.

    Args:
        config: The configuration with its side information.
        data: The samples.
        training: Positions of the training samples in the data set, in the order in which a labeller sees them.
    """
    labels = observed_labels(config, data, training)
    return None if labels is None else lambda clusters: labels.labelling(clusters, training)
