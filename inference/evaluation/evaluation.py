"""How well a fit recovers known factors: the entry `evaluation` of a run's summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from inference.evaluation.node_accuracy import (
    best_matching,
    contingency,
    node_accuracy,
    node_factor_accuracy,
    random_labelling_baseline,
)

__all__ = ["ari", "cluster_accuracy", "evaluate", "nmi", "node_factor_nmi"]


def evaluate(
    responsibilities: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    *,
    bayes_ceiling: float | None = None,
    node_names: Sequence[str] | None = None,
    mask: np.ndarray | None = None,
    split: str = "all",
    seed: int = 0,
) -> dict[str, Any]:
    """Score the most probable cell of each sample against known factors.

    The true cell is the joint level of all factors; the outcome of a node is that of the most probable cell. Samples
    with an unknown factor (a negative code) are left out.

    Args:
        responsibilities: q(N|X) per cell, row-major over the nodes' outcomes, `[sample, cell]`.
        outcomes: Number of outcomes of each node.
        factors: Integer codes `[sample]` of each known factor.
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier, where known; passed through.
        node_names: Names of the nodes; `N1`, `N2`, ... by default.
        mask: Which samples count, bool `[sample]`; all by default.
        split: Name of the part that `mask` selects.
        seed: Seed of the random labellings.

    Returns:
        The keys `cluster_accuracy`, `nmi`, `ari`, `node_accuracy` {factor: value}, `node_accuracy_mean`,
        `node_accuracy_worst`, `random_labelling_baseline` {mean, worst, node_accuracy}, `node_factor_nmi` and
        `node_factor_accuracy` [node, factor], `assignment` {factor: node}, `bayes_ceiling`, `split` and `n_samples`,
        the number of samples that count; values are of JSON types.

    Raises:
        ValueError: If shapes disagree, a responsibility is not finite, or no sample with known factors is left.
    """
    names = [f"N{node + 1}" for node in range(len(outcomes))] if node_names is None else list(node_names)
    mask = np.ones(len(responsibilities), dtype=bool) if mask is None else mask
    _check_responsibilities(responsibilities, int(np.prod(outcomes)))
    _check_alignment(len(responsibilities), factors, mask)
    _check_names(names, outcomes)
    kept = _kept(factors, mask, split)
    cells = responsibilities[kept].argmax(axis=1)
    known = {name: codes[kept] for name, codes in factors.items()}
    return {
        **_cluster_scores(cells, known),
        **_node_scores(cells, outcomes, known, names, np.random.default_rng(seed)),
        "bayes_ceiling": bayes_ceiling,
        "split": split,
        "n_samples": int(kept.sum()),
    }


def cluster_accuracy(predicted_cells: np.ndarray, true_cells: np.ndarray) -> float:
    """Share of samples in the right cell under the best one-to-one matching of predicted to true cells."""
    return best_matching(contingency(predicted_cells, true_cells)) / len(true_cells)


def nmi(predicted_cells: np.ndarray, true_cells: np.ndarray) -> float:
    """Mutual information divided by the arithmetic mean of the two entropies."""
    return float(normalized_mutual_info_score(true_cells, predicted_cells))


def ari(predicted_cells: np.ndarray, true_cells: np.ndarray) -> float:
    """Rand index adjusted for chance."""
    return float(adjusted_rand_score(true_cells, predicted_cells))


def node_factor_nmi(nodes: np.ndarray, factors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Normalised mutual information of every node with every factor, `[node, factor]`; nodes are `[sample, node]`."""
    return np.array([[nmi(node, codes) for codes in factors.values()] for node in nodes.T])


def _cluster_scores(cells: np.ndarray, factors: Mapping[str, np.ndarray]) -> dict[str, float]:
    levels = np.stack(list(factors.values()), axis=1)
    true_cells = np.unique(levels, axis=0, return_inverse=True)[1].reshape(-1)
    return {
        "cluster_accuracy": cluster_accuracy(cells, true_cells),
        "nmi": nmi(cells, true_cells),
        "ari": ari(cells, true_cells),
    }


def _node_scores(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    names: Sequence[str],
    generator: np.random.Generator,
) -> dict[str, Any]:
    nodes = np.stack(np.unravel_index(cells, tuple(outcomes)), axis=1)
    found = node_accuracy(nodes, outcomes, factors)
    chance = random_labelling_baseline(cells, outcomes, factors, generator)
    return {
        "node_accuracy": dict(found.accuracy),
        "node_accuracy_mean": found.mean,
        "node_accuracy_worst": found.worst,
        "random_labelling_baseline": {
            "mean": chance.mean,
            "worst": chance.worst,
            "node_accuracy": dict(chance.accuracy),
        },
        "node_factor_nmi": node_factor_nmi(nodes, factors).tolist(),
        "node_factor_accuracy": node_factor_accuracy(nodes, outcomes, factors).tolist(),
        "assignment": {factor: None if node is None else names[node] for factor, node in found.assignment.items()},
    }


def _kept(factors: Mapping[str, np.ndarray], mask: np.ndarray, split: str) -> np.ndarray:
    kept = mask & np.all([codes >= 0 for codes in factors.values()], axis=0)
    if not kept.any():
        raise ValueError(f"factors: expected a sample with all of them known in split {split!r}, got none; check codes")
    return kept


def _check_responsibilities(responsibilities: np.ndarray, n_cells: int) -> None:
    if responsibilities.ndim != 2 or responsibilities.shape[1] != n_cells:
        raise ValueError(
            f"responsibilities: expected shape [sample, {n_cells}], got {responsibilities.shape}; pass every cell"
        )
    if not np.isfinite(responsibilities).all():
        raise ValueError("responsibilities: expected finite values, got NaN or infinity; the fit has diverged")


def _check_alignment(n_samples: int, factors: Mapping[str, np.ndarray], mask: np.ndarray) -> None:
    shapes = {name: np.shape(codes) for name, codes in factors.items()}
    if not factors or any(shape != (n_samples,) for shape in shapes.values()):
        raise ValueError(f"factors: expected at least one, each of shape ({n_samples},), got {shapes}; align them")
    if mask.shape != (n_samples,) or mask.dtype != bool:
        raise ValueError(f"mask: expected bool ({n_samples},), got {mask.dtype} {mask.shape}; one entry per sample")


def _check_names(names: Sequence[str], outcomes: Sequence[int]) -> None:
    if len(names) != len(outcomes):
        raise ValueError(f"node_names: expected {len(outcomes)}, got {len(names)}; name each node once")
