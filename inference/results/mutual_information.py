"""How much two nodes say of each other under p(N): what an edge strength does not tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from inference.evaluation import information

__all__ = ["mutual_information"]


def mutual_information(log_joint: np.ndarray) -> np.ndarray:
    r"""Mutual information of every pair of nodes under the learned p(N), in nats.

    $$I(N_i; N_j) = \sum_{a, b} p(N_i = a, N_j = b) \log \frac{p(N_i = a, N_j = b)}{p(N_i = a)\, p(N_j = b)}$$

    The nodes beside i and j are summed out. It is 0 where the two are independent and at most the smaller of their
    entropies; in bits it is divided by log 2. Source: Cover and Thomas, Elements of Information Theory, section 2.3.

    Args:
        log_joint: log p(N), `[C_1, ..., C_L]`, up to a constant.

    Returns:
        `[L, L]`, symmetric; the diagonal is 0 by convention (a node holds its whole entropy of itself). NaN where
        log p(N) is not finite.
    """
    joint = np.exp(log_joint - log_joint.max())
    joint = joint / joint.sum()
    found = np.zeros((joint.ndim, joint.ndim))
    for i, j in combinations(range(joint.ndim), 2):
        others = tuple(axis for axis in range(joint.ndim) if axis not in (i, j))
        found[i, j] = found[j, i] = information.mutual_information(joint.sum(axis=others))
    return found
