"""What cannot be beaten: the share of samples whose cell is the most probable one given all that shows it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["bayes_accuracy", "normal_log_likelihood"]


def bayes_accuracy(log_posterior: np.ndarray, factors: Mapping[str, np.ndarray]) -> float:
    """Share of samples whose cell has the highest posterior: the ceiling of cluster accuracy on these samples.

    Args:
        log_posterior: log p(cell, what shows the cell), up to a constant per sample, `[sample, *levels]`.
        factors: Codes `[sample]` of each factor, in the order of the axes.
    """
    cells = np.ravel_multi_index(tuple(factors.values()), log_posterior.shape[1:])
    return float(np.mean(log_posterior.reshape(len(cells), -1).argmax(axis=1) == cells))


def normal_log_likelihood(values: np.ndarray, mean: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
    """log N(values; mean of each cell, scale), up to a constant, `[sample, *levels]`.

    Args:
        values: `[sample]`.
        mean: Mean in each cell, `[*levels]`.
        scale: Standard deviation, one for all cells or `[*levels]`.
    """
    wide = values.reshape(-1, *[1] * np.ndim(mean))
    return -0.5 * ((wide - mean) / scale) ** 2 - np.log(scale)
