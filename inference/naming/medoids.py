"""The samples that show what a cluster looks like: its medoid, and those nearest to it."""

from __future__ import annotations

import numpy as np

__all__ = ["nearest_to_median"]


def nearest_to_median(latent_loc: np.ndarray, members: np.ndarray, present: np.ndarray, count: int) -> np.ndarray:
    """Members of a cluster in the order of their distance to its median, nearest first, at most `count`.

    The median is that of every latent dimension over all members; distances are in units of the cluster's median
    absolute deviation of each dimension. The first one is the medoid of the members that have the modality.

    Args:
        latent_loc: Mean of q(Z|X), `[n, J]`.
        members: Positions of the samples of the cluster.
        present: Which samples have the modality, bool `[n]`.
        count: How many are wanted.
    """
    if not len(members):
        return members
    points = latent_loc[members]
    median = np.median(points, axis=0)
    spread = np.median(np.abs(points - median), axis=0)
    distance = np.square((points - median) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    order = members[np.argsort(distance, kind="stable")]
    return order[present[order]][:count]
