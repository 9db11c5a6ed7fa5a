"""Sums over the samples of every cell, element by element, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = ["CellMoments", "WeightedValues", "cell_moments"]


class WeightedValues(NamedTuple):
    """Some samples: `weights` q(N|X) `[b, C]`, `values` `[b, *shape]`, `measured` one or zero `[b, *shape]`."""

    weights: np.ndarray
    values: np.ndarray
    measured: np.ndarray


@dataclass(frozen=True)
class CellMoments:
    """What is left of the samples: E elements, C cells; only measured elements count.

    Attributes:
        count: Σ_n q(c|x_n), `[C, E]`.
        total: Σ_n q(c|x_n) x_n, `[C, E]`.
        square: Σ_n x_n², `[E]`.
    """

    count: np.ndarray
    total: np.ndarray
    square: np.ndarray

    @classmethod
    def of(cls, batch: WeightedValues, pivot: float = 0.0) -> CellMoments:
        """The sums of some samples, in double precision.

        Args:
            batch: The samples.
            pivot: Subtracted from all values: near their mean it keeps differences of large numbers away.
        """
        n = len(batch.weights)
        measured = batch.measured.reshape(n, -1).astype(np.float64)
        values = np.where(measured > 0, batch.values.reshape(n, -1) - pivot, 0.0)
        weights = batch.weights.astype(np.float64)
        return cls(weights.T @ measured, weights.T @ values, np.square(values).sum(0))

    def __add__(self, other: CellMoments) -> CellMoments:
        return CellMoments(self.count + other.count, self.total + other.total, self.square + other.square)

    def means(self) -> np.ndarray:
        """Mean of every cell, `[C, E]`; the mean over all cells where a cell has no sample."""
        overall = self.total.sum(0) / np.maximum(self.count.sum(0), np.finfo(float).tiny)
        empty = self.count <= 0
        return np.where(empty, overall, self.total / np.where(empty, 1.0, self.count))


def cell_moments(batches: Iterable[WeightedValues], pivot: float = 0.0) -> CellMoments:
    """Add up samples.

    Args:
        batches: All samples, some at a time, at least one batch.
        pivot: See `CellMoments.of`.

    Raises:
        ValueError: There is no batch.
    """
    parts = (CellMoments.of(batch, pivot) for batch in batches)
    first = next(parts, None)
    if first is None:
        raise ValueError("batches: expected at least one sample, got none")
    return sum(parts, start=first)
