r"""Measured factors as further nodes beside those that are seen through a mixture.

With l_nc = p(x_n | c) and a factor that changes nothing about x given c, the cells (c, f) of both have

$$l_{n,(c,f)} = l_{nc}\; 1[f = f_n]$$

where the level f_n of the sample is known, and $l_{nc}$ for every f where it is not: a node of which some samples have
no outcome is summed out there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["with_observed"]


def with_observed(log_likelihood: np.ndarray, codes: np.ndarray, n_levels: Sequence[int]) -> np.ndarray:
    """log p(x_n, levels of n | cell) over the joint cells, row-major; the observed nodes come last.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        codes: Level of every observed factor, `[n, F]`; negative where it is not known.
        n_levels: Levels of each, F.

    Returns:
        `[n, C · ∏ levels]`, -inf in cells of other levels.

    Raises:
        ValueError: Codes that are no levels, or of other samples.
    """
    if codes.shape != (len(log_likelihood), len(n_levels)) or (codes >= np.asarray(n_levels)).any():
        raise ValueError(
            f"codes: expected [{len(log_likelihood)}, {len(n_levels)}] below {list(n_levels)}, got shape {codes.shape} "
            f"up to {codes.max(initial=-1)}; one row per sample"
        )
    joint = log_likelihood
    for code, size in zip(codes.T, n_levels, strict=True):
        allowed = (code[:, None] < 0) | (code[:, None] == np.arange(size))
        joint = (joint[:, :, None] + np.where(allowed, 0.0, -np.inf)[:, None, :]).reshape(len(joint), -1)
    return joint
