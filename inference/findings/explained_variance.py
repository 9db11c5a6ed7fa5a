r"""How much of what a modality varies is told by one node, and by all cells together.

With m_o the mean over the samples of outcome o, weighted by q(N|X), w_o its weight and m the overall mean,

$$R^2 = \frac{\sum_e \sum_o w_{oe} (m_{oe} - m_e)^2}{\sum_e \sum_n (x_{ne} - m_e)^2}$$

over the measured elements e: the variance of E[X | N_l] over that of X (the correlation ratio). It is a description of
the samples; nodes that depend on each other share what they explain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

__all__ = [
    "CellMoments",
    "VarianceExplained",
    "WeightedValues",
    "cell_moments",
    "variance_explained",
]


# Sums over the samples of every cell, element by element, a batch at a time.


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


@dataclass(frozen=True)
class VarianceExplained:
    """Shares of the variance of one modality.

    Attributes:
        nodes: By each node alone, `[L]`.
        random: The same, expected of each node if the clusters were named at random, `[L]`.
        cells: By all cells together: the ceiling of any node.
    """

    nodes: np.ndarray
    random: np.ndarray
    cells: float


def variance_explained(
    moments: CellMoments, outcomes: Sequence[int], generator: np.random.Generator, n_draws: int = 50
) -> VarianceExplained:
    """Shares of the variance from the sums of every cell.

    Args:
        moments: Sums, cells row-major over the nodes' outcomes.
        outcomes: Number of outcomes of each node.
        generator: Source of the random labellings.
        n_draws: Number of them.
    """
    nodes = _by_node(moments, outcomes, np.arange(len(moments.count)))
    drawn = [_by_node(moments, outcomes, generator.permutation(len(moments.count))) for _ in range(n_draws)]
    return VarianceExplained(nodes, np.mean(drawn, axis=0), _share(moments, moments.count, moments.total))


def _by_node(moments: CellMoments, outcomes: Sequence[int], cells: np.ndarray) -> np.ndarray:
    """Share of each node where cell c is what stands at `cells[c]`."""
    count, total = (part[cells].reshape(*outcomes, -1) for part in (moments.count, moments.total))
    axes = range(len(outcomes))
    others = [tuple(axis for axis in axes if axis != node) for node in axes]
    return np.array([_share(moments, count.sum(axis=rest), total.sum(axis=rest)) for rest in others])


def _share(moments: CellMoments, count: np.ndarray, total: np.ndarray) -> float:
    """Between-group over total sum of squares, of groups with these counts and totals `[group, E]`."""
    correction = _square_over(moments.total.sum(0), moments.count.sum(0))
    between = (_square_over(total, count).sum(0) - correction).sum()
    whole = (moments.square - correction).sum()
    return float(np.clip(between / whole, 0.0, 1.0)) if whole > 0 else 0.0


def _square_over(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count > 0, np.square(total) / np.where(count > 0, count, 1.0), 0.0)
