"""Entropy and mutual information of counted pairs, many tables at once, in nats."""

from __future__ import annotations

import numpy as np

__all__ = ["entropy", "mutual_information"]


def entropy(counts: np.ndarray) -> np.ndarray:
    """H = -Σ p log p of the shares along the last axis, `[...]`; of nothing it is 0.

    Args:
        counts: Non-negative, `[..., value]`.
    """
    total = counts.sum(-1, keepdims=True)
    share = counts / np.where(total > 0, total, 1)
    return -np.where(share > 0, share * np.log(np.where(share > 0, share, 1)), 0.0).sum(-1)


def mutual_information(tables: np.ndarray) -> np.ndarray:
    """I = H(row) + H(column) - H(row, column), `[...]`; rounding never makes it negative.

    Args:
        tables: Counts of pairs, `[..., row, column]`.
    """
    joint = tables.reshape(*tables.shape[:-2], -1)
    return np.maximum(entropy(tables.sum(-1)) + entropy(tables.sum(-2)) - entropy(joint), 0.0)
