"""The levels of a modality that sees some of the nodes only."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["level_of_cell", "n_levels"]


def n_levels(outcomes: Sequence[int], visible: Sequence[int]) -> int:
    """Number of joint outcomes of the visible nodes.

    Args:
        outcomes: Number of outcomes per node.
        visible: Positions of the nodes that the modality sees.
    """
    return math.prod(outcomes[node] for node in visible)


def level_of_cell(outcomes: Sequence[int], visible: Sequence[int]) -> np.ndarray:
    """Joint outcome of the visible nodes in every cell, `[C]`; both row-major, nodes in their own order.

    Args:
        outcomes: Number of outcomes per node.
        visible: Positions of the nodes that the modality sees, in any order.

    >>> level_of_cell((2, 2, 2), (0, 2))
    array([0, 1, 0, 1, 2, 3, 2, 3])
    """
    nodes = sorted(visible)
    values = np.unravel_index(np.arange(math.prod(outcomes)), tuple(outcomes))
    levels: np.ndarray = np.ravel_multi_index([values[node] for node in nodes], [outcomes[node] for node in nodes])
    return levels
