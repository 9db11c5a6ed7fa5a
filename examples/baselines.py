"""What chance alone reaches on a data set with known factors."""

from __future__ import annotations

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.evaluation.node_accuracy import RandomLabelling, random_labelling_baseline

__all__ = ["labelling_baseline"]


def labelling_baseline(data: MultimodalData, seed: int = 0, n_draws: int = 1000) -> RandomLabelling:
    """Expected node accuracy of one who has the true cells as clusters and leaves to chance which is which.

    Every labelling is scored with its best assignment of nodes to factors and of outcomes to levels, so that chance is
    far above one over the number of levels.

    Args:
        data: Samples with known factors.
        seed: Seed of the labellings, not negative.
        n_draws: Number of labellings; the standard errors in the result tell whether they suffice.

    Raises:
        ValueError: If no factors are known.
    """
    if not data.factors:
        raise ValueError(f"{data.name}: expected known factors, got none; there are no true cells to label")
    outcomes = [len(data.factor_levels[name]) for name in data.factors]
    cells = np.ravel_multi_index(tuple(data.factors.values()), outcomes)
    return random_labelling_baseline(cells, outcomes, data.factors, np.random.default_rng(seed), n_draws)
