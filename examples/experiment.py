"""Checks of the arguments of generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from causalpima.inference.analyses.node_scores import RandomLabelling, random_labelling_baseline
from causalpima.inference.data.multimodal import MultimodalData

__all__ = [
    "bayes_accuracy",
    "check_at_least",
    "check_choice",
    "check_seed",
    "labelling_baseline",
    "normal_log_likelihood",
]


def check_at_least(name: str, value: float, least: int) -> None:
    """Refuse a number below the least one.

    Raises:
        ValueError: If it is below.
    """
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}; ask for {least} or more")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a word that is none of the choices.

    Raises:
        ValueError: If it is none of them.
    """
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}; choose one of these")


def check_seed(seed: int) -> None:
    """Refuse a negative seed.

    Raises:
        ValueError: If it is negative.
    """
    if seed < 0:
        raise ValueError(f"seed: expected a non-negative integer, got {seed}; choose 0 or more")


# What chance alone reaches on a data set with known factors.


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


# What cannot be beaten: the share of samples whose cell is the most probable one given all that shows it.


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
