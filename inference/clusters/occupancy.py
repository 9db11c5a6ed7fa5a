"""How many cells of a fit are occupied, and whether it collapsed."""

from __future__ import annotations

import numpy as np

__all__ = ["OCCUPIED_SHARE", "fit_status", "most_probable_cells"]

OCCUPIED_SHARE = 0.005


def fit_status(responsibilities: np.ndarray) -> str:
    """`collapsed` if fewer than half of the cells are occupied, else `ok`."""
    return "collapsed" if 2 * most_probable_cells(responsibilities) < responsibilities.shape[1] else "ok"


def most_probable_cells(responsibilities: np.ndarray) -> int:
    """Cells that are the most probable one of more than 0.5 % of the samples (vague mass does not count)."""
    sizes = np.bincount(responsibilities.argmax(1), minlength=responsibilities.shape[1])
    return int((sizes > OCCUPIED_SHARE * len(responsibilities)).sum())
