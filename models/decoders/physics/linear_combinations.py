"""Guesses for laws that are linear in most of their parameters: try the others on a grid, solve for these."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["best_combination"]


def best_combination(curve: np.ndarray, designs: Iterable[np.ndarray]) -> tuple[int, np.ndarray]:
    """The design whose columns combine to the curve best.

    Args:
        curve: `[D]`, NaN where nothing is known.
        designs: Matrices `[D, K]`, one for each point of a grid.

    Returns:
        The number of the design with the smallest squared error, and its coefficients `[K]`; NaN if the curve has
        fewer known elements than coefficients.
    """
    known = np.isfinite(curve)
    errors, coefficients = [], []
    for design in designs:
        solution = np.linalg.lstsq(design[known], curve[known], rcond=None)[0]
        coefficients.append(solution if known.sum() >= len(solution) else np.full_like(solution, np.nan))
        errors.append(np.square(design[known] @ solution - curve[known]).sum())
    best = int(np.argmin(errors))
    return best, coefficients[best]
