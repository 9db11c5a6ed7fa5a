"""Expectations under scenarios: an interval over the graphs, and beside it one for the sampling of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from inference.queries.scenarios import Scenario

__all__ = ["INTERVAL", "Estimate", "estimate"]

INTERVAL = 0.9
"""Probability of the intervals for the sampling of the data."""

_SAME = 1e-6
_ELEMENTS_AT_ONCE = 2**22


class Estimate(NamedTuple):
    """Of one or many quantities, arrays of the same shape.

    Attributes:
        low: Smallest value over the graphs, at the fitted tables.
        high: Largest.
        lower: Lower end of the 90 % interval of the sampling of the data: the smallest over the graphs of the 5 %
            quantiles of each.
        upper: Upper end: the largest of the 95 % quantiles.
        is_identified: Whether all graphs say the same: then it is a point, `low`.
    """

    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    is_identified: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The point, NaN where graphs disagree."""
        value: np.ndarray = np.where(self.is_identified, (self.low + self.high) / 2, np.nan)
        return value


def estimate(values: np.ndarray, scenario: Scenario, minus: Scenario | None = None) -> Estimate:
    """Expectation of functions of the cell under a scenario, or its difference to that under another.

    Args:
        values: `[C, *shape]`.
        scenario: Probabilities of the cells.
        minus: What is subtracted, graph by graph and draw by draw; None: nothing.
    """
    flat = values.reshape(len(values), -1)
    cells = scenario.cells - (0.0 if minus is None else minus.cells)
    draws = scenario.draws - (0.0 if minus is None else minus.draws)
    parts = [_of_block(cells, draws, block) for block in _blocks(flat, draws.shape[0] * draws.shape[1])]
    low, high, lower, upper = (np.concatenate(part).reshape(values.shape[1:]) for part in zip(*parts, strict=True))
    return Estimate(low, high, lower, upper, high - low <= _SAME * max(1.0, _size(flat)))


def _size(flat: np.ndarray) -> float:
    finite = np.abs(flat[np.isfinite(flat)])
    return float(finite.max(initial=0.0))


def _blocks(flat: np.ndarray, n_rows: int) -> Iterator[np.ndarray]:
    width = max(1, _ELEMENTS_AT_ONCE // n_rows)
    yield from (flat[:, at : at + width] for at in range(0, flat.shape[1], width))


def _of_block(cells: np.ndarray, draws: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    of_graphs = cells @ values
    tails = np.quantile(draws @ values, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=1)
    return of_graphs.min(0), of_graphs.max(0), tails[0].min(0), tails[1].max(0)
