"""What a sample of a group of replicates counts in a score of graphs."""

from __future__ import annotations

import numpy as np

__all__ = ["group_weights"]


def group_weights(groups: np.ndarray | None) -> np.ndarray | None:
    """One over the size of the sample's group, `[n]`, so that a group counts as one independent sample.

    Replicates of one specimen share its node outcomes. Counted one by one, k of them multiply every log-likelihood
    ratio by k while BIC's penalty stays, and dependence that is chance among the specimens becomes an edge. Where the
    members of a group do differ, this is cautious: edges need more groups.

    Args:
        groups: Group of each sample, `[n]`; None: there are none.

    Returns:
        Weights that sum to the number of groups; None where there are no groups.
    """
    if groups is None:
        return None
    _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights: np.ndarray = 1.0 / sizes[members.reshape(-1)]
    return weights
