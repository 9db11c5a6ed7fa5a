"""Clusters named by what is assumed and can't be tested: additive effects, or independent nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import scipy
from scipy.special import xlogy

from causalpima.inference.clusters.labels import (
    Clusters,
    Labelling,
    as_tables,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
    rename_towards,
)

__all__ = [
    "TIE_WINDOW",
    "Additive",
    "ClusterMeans",
    "additive_labellings",
    "chance_limit",
    "cluster_means",
    "curve_moments",
    "image_moments",
    "label_by_independence",
    "label_by_read_outs",
    "plain_values",
    "residuals",
    "total_correlation",
]


# Labellings by the assumption that what the nodes do to declared quantities adds up.


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


# Labellings under which the nodes depend on each other least, for nodes that are declared independent.


TIE_WINDOW = 8.0
"""Labellings this close to the least dependence, in nats over all samples, are told apart by other means."""

_CHANCE = 0.999


def chance_limit(outcomes: Sequence[int]) -> float:
    """Total correlation that independent nodes exceed once in a thousand samples of any size, in nats (Wilks)."""
    n_free = prod(outcomes) - 1 - sum(size - 1 for size in outcomes)
    return float(scipy.stats.chi2.ppf(_CHANCE, n_free) / 2) if n_free else 0.0


def total_correlation(mass: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""How far the nodes are from independence, times the number of samples.

    $$n \Big( \sum_\ell H(N_\ell) - H(N) \Big) \ge 0$$

    in nats, the logarithm of the likelihood ratio of the complete graph to the empty one.

    Args:
        mass: Samples per cluster, `[C]`.
        labellings: `[K, C]`.
        outcomes: Outcomes per node.

    Returns:
        `[K]`.
    """
    tables = as_tables(mass, labellings, outcomes)
    nodes = range(len(outcomes))
    marginals = [tables.sum(tuple(1 + k for k in nodes if k != node)) for node in nodes]
    own = np.sum([xlogy(table, table).sum(1) for table in marginals], axis=0)
    total = mass.sum()
    found: np.ndarray = xlogy(mass, mass).sum() - own + (len(outcomes) - 1) * xlogy(total, total)
    return found.clip(min=0.0)


_MOST_NOISE = 100.0
_MOST_LEFT = 0.05


def label_by_read_outs(
    clusters: Clusters, nodes: Mapping[str, int], values: np.ndarray, present: np.ndarray, names: Sequence[str]
) -> Labelling:
    """The labelling under which the nodes' effects on the read-outs come closest to adding up.

    No node is named where even the smallest residual is more than 100 times what chance leaves, and more than 5 % of
    the spread of the means: effects do not add up then.

    Args:
        clusters: The clusters of n samples.
        nodes: Outcomes per node by name.
        values: Read-outs of the samples that have them, `[m, F]`.
        present: Which samples these are, bool `[n]`.
        names: What the read-outs are of.

    Raises:
        ValueError: More labellings than can be searched, or read-outs that do not differ.
    """
    outcomes = tuple(nodes.values())
    means = cluster_means(clusters.responsibilities[present], values)
    found = additive_labellings(means, outcomes)
    least = float(found.residual.min())
    is_refuted = least > max(_MOST_NOISE * found.noise, _MOST_LEFT)
    details = {"read_outs": list(names), "n_read_outs": values.shape[1], "is_refuted": is_refuted, **_residuals(found)}
    labelling = _labelling(clusters, nodes, found, found.remaining, "read_outs", details)
    return replace(labelling, named_nodes=()) if is_refuted else labelling


def label_by_independence(clusters: Clusters, nodes: Mapping[str, int]) -> Labelling:
    """The labelling under which the nodes are closest to independence.

    Those within `TIE_WINDOW` of the least total correlation are told apart by how nearly the nodes' effects on the mean
    embedding add up. No node is named where even the least total correlation is more than chance allows.

    Args:
        clusters: The clusters.
        nodes: Outcomes per node by name.

    Raises:
        ValueError: More labellings than can be searched.
    """
    outcomes = tuple(nodes.values())
    every = enumerate_labellings(outcomes)
    dependence = total_correlation(clusters.responsibilities.sum(0, dtype=np.float64), every, outcomes)
    close = dependence <= dependence.min() + TIE_WINDOW
    means = cluster_means(clusters.responsibilities, clusters.embedding.astype(np.float64))
    found = additive_labellings(means, outcomes, every[close])
    limit = chance_limit(outcomes)
    details = {
        "total_correlation": float(dependence[close][found.best]),
        "chance_limit": limit,
        "runner_up_total_correlation": float(np.partition(dependence, 1)[1]) if len(every) > 1 else None,
        "window": TIE_WINDOW,
        **_residuals(found),
    }
    labelling = _labelling(clusters, nodes, found, np.ones(len(found.labellings), dtype=bool), "independence", details)
    is_refuted = len(nodes) > 1 and dependence.min() > limit
    return replace(labelling, named_nodes=()) if is_refuted else labelling


def _residuals(found: Additive) -> dict[str, Any]:
    return {"residual": float(found.residual.min()), "runner_up_residual": found.runner_up, "noise": found.noise}


def _labelling(
    clusters: Clusters,
    nodes: Mapping[str, int],
    found: Additive,
    remaining: np.ndarray,
    source: Any,
    details: Mapping[str, Any],
) -> Labelling:
    """The best labelling, outcomes numbered as the clusters are; named are the nodes that all others agree on."""
    outcomes = tuple(nodes.values())
    best = found.labellings[found.best]
    codes = partition_codes(node_outcomes(found.labellings[remaining], outcomes))
    mine = partition_codes(node_outcomes(best, outcomes))
    settled = [name for name, own in zip(nodes, mine, strict=True) if (codes == own).all(-1).any(-1).all()]
    mass = clusters.responsibilities.sum(0, dtype=np.float64)
    permutation = rename_towards(best, np.arange(len(mass)), outcomes, mass)
    return Labelling(permutation, source, settled, {**details, "n_remaining": int(remaining.sum())})


# Numbers that are read off images and curves, without a network.


def image_moments(images: np.ndarray) -> np.ndarray:
    """Share of every channel, log mass, centroid and log spread across and down of bright things on a dark ground.

    With one channel its share says nothing and is left out. Negative values count as dark.

    Args:
        images: `[n, height, width, channel]`.

    Returns:
        `[n, channel + 5]`; positions and spreads in units of the width and of the height.
    """
    bright = np.clip(np.asarray(images, dtype=np.float64), 0.0, None)
    # A thousandth of a pixel, so that a dark image has a mass.
    channel = bright.sum((1, 2)) + 1e-3
    mass = channel.sum(1, keepdims=True)
    shares = channel / mass if channel.shape[1] > 1 else np.empty((len(channel), 0))
    plane = bright.sum(3) + 1e-3 / bright[0, :, :, 0].size
    places = [_place(plane.sum(axis)) for axis in (1, 2)]
    columns = [np.log(mass), *(column[:, None] for place in places for column in place)]
    return np.concatenate([shares, *columns], axis=1)


def _place(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centroid and log standard deviation of a profile `[n, position]`, in units of its length."""
    position = (np.arange(profile.shape[1]) + 0.5) / profile.shape[1]
    weight = profile / profile.sum(1, keepdims=True)
    centre = weight @ position
    spread = (weight * (position - centre[:, None]) ** 2).sum(1)
    # The variance of one pixel is the least that an image can show.
    return centre, 0.5 * np.log(spread + 1 / 12 / profile.shape[1] ** 2)


def curve_moments(curves: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Mean, slope of the least-squares line, height from lowest to highest, and position of the highest value.

    Args:
        curves: `[n, position]`, complete.
        positions: `[position]`.

    Returns:
        `[n, 4]`.
    """
    values = np.asarray(curves, dtype=np.float64)
    centred = positions - positions.mean()
    slope = values @ centred / (centred**2).sum()
    height = values.max(1) - values.min(1)
    return np.stack([values.mean(1), slope, height, positions[values.argmax(1)]], axis=1)


def plain_values(values: np.ndarray) -> np.ndarray:
    """Every element as a quantity of its own, `[n, ...]` -> `[n, F]`."""
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)
