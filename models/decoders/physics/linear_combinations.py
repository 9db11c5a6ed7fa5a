"""Guesses for laws that are linear in most of their parameters: try the others on a grid, solve for these."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["best_combination"]


def best_combination(
    curve: Float[np.ndarray, " D"], designs: Float[np.ndarray, "G D K"]
) -> tuple[int, Float[np.ndarray, " K"]]:
    """The design whose columns combine to the curve best.

    Args:
        curve: `[D]`, NaN where nothing is known.
        designs: One matrix for each point of a grid.

    Returns:
        The number of the design with the smallest squared error, and its coefficients; NaN if the curve has fewer
        known elements than coefficients.
    """
    known, n_columns = np.isfinite(curve), designs.shape[-1]
    if known.sum() < n_columns:
        return 0, np.full(n_columns, np.nan)
    basis, values, _ = np.linalg.svd(designs[:, known], full_matrices=False)
    is_direction = values > 1e-10 * values.max(-1, keepdims=True)
    explained = np.square(np.einsum("gdk,d->gk", basis, curve[known]) * is_direction).sum(-1)
    best = int(np.argmax(explained))
    return best, np.linalg.lstsq(designs[best, known], curve[known], rcond=None)[0]
