"""Positions of a curve made increasing, or refused."""

from __future__ import annotations

import numpy as np

from inference.data.preparation.options import CurveOrder
from inference.data.preparation.problems import UnusableError

__all__ = ["JITTER", "in_order"]

JITTER = 0.01
"""Share of a curve's range by which its position may fall behind its maximum and count as noise."""


def in_order(x: np.ndarray, y: np.ndarray, order: CurveOrder) -> tuple[np.ndarray, np.ndarray]:
    r"""Strictly increasing positions, and their values.

    A curve that runs down is turned round. Where the position falls behind its running maximum,

    $$b = \max_i \bigl(\max_{j \le i} x_j - x_i\bigr) / (\max x - \min x),$$

    by at most `JITTER`, that is noise, and the points are sorted. Beyond it, `refuse` gives the curve up, `sort` sorts
    it none the less (a spectrum in any order), and `cut` keeps the points up to the first largest position (a test with
    unloading). Values at equal positions are averaged.

    Args:
        x: Position, `[point]`, finite.
        y: Value, `[point]`, finite.
        order: What is done about positions that go back.

    Returns:
        Position and value, `[distinct positions kept]`.

    Raises:
        UnusableError: The position goes back, or is the same everywhere.
    """
    if x[0] > x[-1] and _setback(x[::-1]) < _setback(x):
        x, y = x[::-1], y[::-1]
    if np.ptp(x) == 0:
        raise UnusableError("the position is the same everywhere")
    if order == "cut":
        x, y = x[: x.argmax() + 1], y[: x.argmax() + 1]
    setback = _setback(x)
    if setback > JITTER and order != "sort":
        raise UnusableError(f"the position goes back by {setback:.0%} of its range; see --curve_order")
    positions, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return positions, np.bincount(which, weights=y) / counts


def _setback(x: np.ndarray) -> float:
    spread = np.ptp(x)
    return float((np.maximum.accumulate(x) - x).max() / spread) if spread else 0.0
