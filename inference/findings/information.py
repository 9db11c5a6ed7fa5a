"""Entropy and mutual information of tables, many at once, in nats."""

from __future__ import annotations

import numpy as np

__all__ = [
    "entropy",
    "mutual_information",
]


def entropy(counts: np.ndarray) -> np.ndarray:
    """H = -Σ p log p of the shares along the last axis, `[...]`; of nothing it is 0.

    Args:
        counts: Non-negative, `[..., value]`.
    """
    total = counts.sum(-1, keepdims=True)
    share = counts / np.where(total > 0, total, 1)
    return -np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0.0).sum(-1)


def mutual_information(tables: np.ndarray) -> np.ndarray:
    """I = Σ p(a, b) log(p(a, b) / (p(a) p(b))), `[...]`; of nothing it is 0, and rounding never makes it negative.

    Args:
        tables: Counts or probabilities of pairs, `[..., row, column]`.
    """
    total = tables.sum((-2, -1), keepdims=True)
    joint = tables / np.where(total == 0, 1, total)
    log_joint, log_rows, log_columns = (
        np.log(values, out=np.zeros_like(values), where=values != 0)
        for values in (joint, joint.sum(-1, keepdims=True), joint.sum(-2, keepdims=True))
    )
    # Logarithms first: the product of two small marginals underflows.
    terms = np.where(joint != 0, joint * (log_joint - log_rows - log_columns), 0.0)
    return np.maximum(terms.sum((-2, -1)), 0.0)
