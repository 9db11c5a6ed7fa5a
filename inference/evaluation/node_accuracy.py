"""How well nodes stand for known factors, and what chance alone would reach with the same clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = [
    "NodeAccuracy",
    "RandomLabelling",
    "best_matching",
    "contingency",
    "node_accuracy",
    "node_factor_accuracy",
    "random_labelling_baseline",
]


@dataclass(frozen=True)
class NodeAccuracy:
    """Accuracy of nodes read as factors, under the best one-to-one assignment.

    Attributes:
        accuracy: Share of samples with the right level, per factor.
        assignment: Index of the node that stands for each factor; None where the nodes did not suffice.
    """

    accuracy: Mapping[str, float]
    assignment: Mapping[str, int | None]

    @property
    def mean(self) -> float:
        """Mean over the factors."""
        return float(np.mean(list(self.accuracy.values())))

    @property
    def worst(self) -> float:
        """Lowest of the factors."""
        return min(self.accuracy.values())


@dataclass(frozen=True)
class RandomLabelling:
    """Node accuracy that the same clusters reach when it is left to chance which cluster is which cell.

    Attributes:
        mean: Expected `NodeAccuracy.mean`.
        worst: Expected `NodeAccuracy.worst`.
        mean_standard_error: Monte-Carlo standard error of `mean`.
        worst_standard_error: Monte-Carlo standard error of `worst`.
        accuracy: Per factor, the expected `NodeAccuracy.accuracy`.
    """

    mean: float
    worst: float
    mean_standard_error: float
    worst_standard_error: float
    accuracy: Mapping[str, float]


def node_accuracy(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> NodeAccuracy:
    """Accuracy of each factor as told by the node that stands for it.

    A pair of node and factor scores the share of samples that agree under the best one-to-one matching of outcomes to
    levels: where one side has more values than the other, the surplus counts as wrong. Nodes are then assigned to
    factors one to one so that the mean accuracy is highest. A factor that is left without a node scores what a
    constant guess would, the share of its most frequent level.

    Args:
        nodes: Outcome of each node, `[sample, node]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.

    Raises:
        ValueError: If a code is negative, or an outcome does not exist.
    """
    scores = _all_pairs(nodes, outcomes, factors)
    rows, columns = linear_sum_assignment(scores, maximize=True)
    node_of = {name: int(rows[columns == column][0]) for column, name in enumerate(factors)}
    return NodeAccuracy(
        accuracy={name: float(scores[node, column]) for column, (name, node) in enumerate(node_of.items())},
        assignment={name: node if node < len(outcomes) else None for name, node in node_of.items()},
    )


def node_factor_accuracy(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Accuracy of every node read as every factor, each under its best matching, `[node, factor]`.

    Args:
        nodes: Outcome of each node, `[sample, node]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.

    Raises:
        ValueError: If a code is negative, or an outcome does not exist.
    """
    return _all_pairs(nodes, outcomes, factors)[: len(outcomes)]


def random_labelling_baseline(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    generator: np.random.Generator,
    n_draws: int = 1000,
) -> RandomLabelling:
    """Expected node accuracy of the found clusters when each is given a cell at random, all distinct.

    Every draw is scored as in `node_accuracy`, with its best assignment and matchings. Chance is far from 1/2 for
    binary factors: about 0.76 (mean) and 0.64 (worst) for clean clusters of the circles.

    Args:
        cells: Found cell of each sample, row-major over the nodes' outcomes, `[sample]`.
        outcomes: Number of outcomes of each node.
        factors: Codes `[sample]` of each factor, none negative.
        generator: Source of the labellings.
        n_draws: Number of labellings, at least 2; the standard errors in the result tell whether they suffice.

    Raises:
        ValueError: If a code is negative.
    """
    found, clusters = np.unique(cells, return_inverse=True)
    n_cells = int(np.prod(outcomes))
    labellings = np.stack([generator.permutation(n_cells)[: len(found)] for _ in range(n_draws)])
    scores = _pair_scores(labellings, outcomes, _level_counts(clusters, factors))
    assigned = np.array([_assigned(score) for score in scores])
    mean, worst = assigned.mean(axis=1), assigned.min(axis=1)
    errors = [float(values.std(ddof=1) / n_draws**0.5) for values in (mean, worst)]
    accuracy = dict(zip(factors, assigned.mean(axis=0).tolist(), strict=True))
    return RandomLabelling(float(mean.mean()), float(worst.mean()), errors[0], errors[1], accuracy)


def _assigned(scores: np.ndarray) -> np.ndarray:
    """Score of every factor, `[factor]`, with the node that is assigned to it; scores are `[node, factor]`."""
    rows, columns = linear_sum_assignment(scores, maximize=True)
    values: np.ndarray = scores[rows, columns][np.argsort(columns)]
    return values


def contingency(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Count the samples with each pair of codes, `[row code, column code]`.

    Raises:
        ValueError: If a code is negative.
    """
    lowest = min(rows.min(), columns.min())
    if lowest < 0:
        raise ValueError(f"codes: expected none below 0, got {lowest}; leave out samples with unknown factors")
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    return np.bincount(np.ravel_multi_index((rows, columns), shape), minlength=shape[0] * shape[1]).reshape(shape)


def best_matching(table: np.ndarray) -> float:
    """Largest total of entries that a one-to-one matching of rows to columns can pick (the Hungarian method)."""
    return float(table[linear_sum_assignment(table, maximize=True)].sum())


def _all_pairs(nodes: np.ndarray, outcomes: Sequence[int], factors: Mapping[str, np.ndarray]) -> np.ndarray:
    cells = np.ravel_multi_index(tuple(nodes.T), tuple(outcomes))
    found, clusters = np.unique(cells, return_inverse=True)
    return _pair_scores(found[None], outcomes, _level_counts(clusters, factors))[0]


def _level_counts(clusters: np.ndarray, factors: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    return [contingency(clusters, codes) for codes in factors.values()]


def _pair_scores(labellings: np.ndarray, outcomes: Sequence[int], level_counts: Sequence[np.ndarray]) -> np.ndarray:
    """Best matched share of every pair, `[draw, node, factor]`, with constant nodes added until each factor has one.

    Args:
        labellings: Cell that each cluster stands for, `[draw, cluster]`.
        outcomes: Number of outcomes of each node.
        level_counts: Per factor, number of samples `[cluster, level]`.
    """
    sizes = [*outcomes, *[1] * (len(level_counts) - len(outcomes))]
    labels = np.unravel_index(labellings, sizes)
    scores = [_matched_counts(np.eye(size)[node], level_counts) for size, node in zip(sizes, labels, strict=True)]
    return np.stack(scores, axis=1) / level_counts[0].sum()


def _matched_counts(one_hot: np.ndarray, level_counts: Sequence[np.ndarray]) -> np.ndarray:
    """Best matched counts `[draw, factor]` of one node, whose outcome of each cluster is `[draw, cluster, outcome]`."""
    tables = [one_hot.swapaxes(1, 2) @ counts for counts in level_counts]
    return np.array([[best_matching(table) for table in draws] for draws in tables]).T
