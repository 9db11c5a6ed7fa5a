"""One grid for curves of different length and spacing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.data.preparation.problems import UnusableError

__all__ = ["MOST_POINTS", "common_grid", "on_grid"]

MOST_POINTS = 256
"""Largest number of positions that is chosen without being asked for."""


def common_grid(positions: Sequence[np.ndarray], n_points: int | None) -> np.ndarray:
    """Positions from the smallest to the largest that was measured on any sample.

    Curves that all have the same positions keep them, whatever their spacing, unless a number of points is asked for.
    Otherwise the grid is even, and its number of points, if not given, is the median of the curves', at most
    `MOST_POINTS`.

    Args:
        positions: Increasing positions of each curve.
        n_points: Number of grid points, or None.
    """
    first = positions[0]
    if n_points is None and all(np.array_equal(first, other) for other in positions[1:]):
        return first
    n_points = n_points or min(MOST_POINTS, round(float(np.median([len(x) for x in positions]))))
    return np.linspace(min(x[0] for x in positions), max(x[-1] for x in positions), n_points)


def on_grid(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The curve at the grid's positions, linearly interpolated; NaN before its first point and beyond its last.

    Args:
        grid: Positions, `[position]`.
        x: Increasing positions of the curve, `[point]`.
        y: Values there, `[point]`.

    Raises:
        UnusableError: The curve lies between two positions of the grid.
    """
    values = np.interp(grid, x, y, left=np.nan, right=np.nan)
    if np.isnan(values).all():
        raise UnusableError(f"it reaches from {x[0]:g} to {x[-1]:g}, between two points of the common grid")
    return values
