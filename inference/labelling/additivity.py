"""Labellings by the assumption that what the nodes do to declared quantities adds up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from inference.labelling.labelling_search import enumerate_labellings

__all__ = ["Additive", "ClusterMeans", "additive_labellings", "cluster_means", "residuals"]

_ERRORS = 3.0


@dataclass(frozen=True)
class ClusterMeans:
    """Mean of every quantity in every cluster.

    Attributes:
        mean: `[C, F]`.
        variance: Of the means, from the spread inside the clusters, `[C, F]`.
    """

    mean: np.ndarray
    variance: np.ndarray


@dataclass(frozen=True)
class Additive:
    """Labellings by how little of the means is left beside additive effects of the nodes.

    Attributes:
        labellings: Those that were compared, `[K, C]`.
        residual: Of each, `[K]`.
        noise: What is expected to be left by chance under the right labelling.
    """

    labellings: np.ndarray
    residual: np.ndarray
    noise: float

    @property
    def best(self) -> int:
        """Position of the labelling with the smallest residual."""
        return int(self.residual.argmin())

    @property
    def remaining(self) -> np.ndarray:
        """Which labellings chance does not tell from the best one, bool `[K]`."""
        found: np.ndarray = self.residual <= self.residual.min() + _ERRORS * self.noise
        return found

    @property
    def runner_up(self) -> float | None:
        """The second smallest residual; None where there is one labelling."""
        return float(np.partition(self.residual, 1)[1]) if len(self.residual) > 1 else None


def cluster_means(responsibilities: np.ndarray, values: np.ndarray) -> ClusterMeans:
    """Means under the responsibilities, of quantities that are brought to mean 0 and variance 1; constants to 0.

    Args:
        responsibilities: `[n, C]`.
        values: `[n, F]`.
    """
    scale = values.std(0)
    scaled = (values - values.mean(0)) / np.where(scale > 0, scale, 1.0)
    mass = responsibilities.sum(0, dtype=np.float64)[:, None]
    safe = np.where(mass > 0, mass, 1.0)
    mean = responsibilities.T @ scaled / safe
    spread = responsibilities.T @ scaled**2 / safe - mean**2
    effective = mass**2 / np.where(mass > 0, (responsibilities.astype(np.float64) ** 2).sum(0)[:, None], 1.0)
    return ClusterMeans(mean, np.clip(spread, 0, None) / np.maximum(effective, 1.0))


def additive_labellings(means: ClusterMeans, outcomes: Sequence[int], labellings: np.ndarray | None = None) -> Additive:
    """Compare labellings by `residuals`.

    Args:
        means: Of the clusters.
        outcomes: Outcomes per node.
        labellings: `[K, C]`; None: all that differ in meaning.

    Raises:
        ValueError: More labellings than can be searched, or means that do not differ.
    """
    every = enumerate_labellings(outcomes) if labellings is None else labellings
    total = ((means.mean - means.mean.mean(0)) ** 2).sum()
    if not total > 0:
        raise ValueError("read_outs: expected quantities that differ between clusters, got the same mean in all")
    n_cells, n_effects = prod(outcomes), 1 + sum(size - 1 for size in outcomes)
    noise = (1 - n_effects / n_cells) * means.variance.sum() / total
    return Additive(every, residuals(means.mean, every, outcomes), float(noise))


def residuals(means: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""What additive effects of the nodes leave of the means, as a share of their spread.

    $$\|(I - D D^+) M\|^2 / \|M - \bar M\|^2,$$

    with the rows of M in the order of the cells, and D the constant and one indicator per outcome of every node.

    Args:
        means: Of the clusters, `[C, F]`.
        labellings: `[K, C]`.
        outcomes: Outcomes per node.

    Returns:
        `[K]`, 0 where effects add exactly.
    """
    left_over = _projector(outcomes)
    by_cell = means[np.argsort(labellings, axis=1)]
    total = ((means - means.mean(0)) ** 2).sum()
    found: np.ndarray = np.einsum("kcf,cd,kdf->k", by_cell, left_over, by_cell, optimize=True) / total
    return found.clip(min=0.0)


def _projector(outcomes: Sequence[int]) -> np.ndarray:
    """I - D D⁺, `[C, C]`."""
    codes = np.unravel_index(np.arange(prod(outcomes)), tuple(outcomes))
    columns = [code[:, None] == np.arange(size) for code, size in zip(codes, outcomes, strict=True)]
    effects = np.concatenate(columns, axis=1).astype(np.float64)
    found: np.ndarray = np.eye(prod(outcomes)) - effects @ np.linalg.pinv(effects)
    return found
