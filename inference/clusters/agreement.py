"""How far several fits of the same samples agree: clusters, cells, nodes, edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from inference.clusters.matching import match_cells
from inference.clusters.read_out import row_blocks

__all__ = [
    "adjacency_frequency",
    "align_cells",
    "align_nodes",
    "edge_frequency",
    "node_agreement",
    "pairwise_ari",
]


def pairwise_ari(cells: Sequence[np.ndarray]) -> np.ndarray:
    """Adjusted Rand index of every pair of clusterings, `[K, K]`, the diagonal 1; it does not ask for names.

    Args:
        cells: Most probable cell of each sample, `[n]` per fit.
    """
    table = np.eye(len(cells))
    for i, one in enumerate(cells):
        for j in range(i):
            table[i, j] = table[j, i] = adjusted_rand_score(one, cells[j])
    return table


def align_cells(
    reference: np.ndarray, other: np.ndarray, outcomes: Sequence[int], fixed: Sequence[int] = ()
) -> np.ndarray:
    """Numbers for the cells of another fit, so that it agrees with the reference as well as it can.

    Maximises sum_n sum_c other[n, c] reference[n, permutation[c]] over the bijections that leave the outcomes of the
    fixed nodes as they are (Hungarian algorithm): all bijections without a fixed node, the identity with all fixed.

    Args:
        reference: Responsibilities of the cells, `[n, C]`, row-major over the outcomes.
        other: Responsibilities of the same samples, `[n, C]`.
        outcomes: Outcomes per node.
        fixed: Positions of the nodes that side information names.

    Returns:
        `permutation` `[C]`: cell c of `other` becomes cell `permutation[c]`.
    """
    if not len(fixed):
        return match_cells(reference, other)
    names = np.stack(np.unravel_index(np.arange(reference.shape[1]), tuple(outcomes)), axis=1)[:, list(fixed)]
    block = np.unique(names, axis=0, return_inverse=True)[1].reshape(-1)
    permutation = np.empty(len(block), dtype=np.int64)
    for number in np.unique(block):
        cells = np.flatnonzero(block == number)
        permutation[cells] = cells[match_cells(reference[:, cells], other[:, cells])]
    return permutation


def align_nodes(reference: np.ndarray, other: np.ndarray, outcomes: Sequence[int], exchange: bool) -> np.ndarray:
    """The same, over renamings of outcomes inside nodes alone, and where told exchanges of nodes of equal size.

    That is what remains free where each node is known for itself, but not which of its outcomes is which. Renamings
    maximise, node by node, the expected number of samples with the same outcome (Hungarian algorithm on the marginal
    responsibilities); of the exchanges that with the largest sum over the nodes is taken.

    Args:
        reference: Responsibilities of the cells, `[n, C]`, row-major over the outcomes.
        other: Responsibilities of the same samples, `[n, C]`.
        outcomes: Outcomes per node.
        exchange: Whether nodes may change places.

    Returns:
        `permutation` `[C]`: cell c of `other` becomes cell `permutation[c]`.
    """
    common = _common(reference, other, outcomes)
    orders = permutations(range(len(outcomes))) if exchange else [tuple(range(len(outcomes)))]
    possible = [order for order in orders if all(outcomes[a] == outcomes[b] for a, b in enumerate(order))]
    best = max(possible, key=lambda order: sum(_matched(common[a][b])[0] for a, b in enumerate(order)))
    names = np.unravel_index(np.arange(reference.shape[1]), tuple(outcomes))
    renamed = np.empty((len(outcomes), len(names[0])), dtype=np.int64)
    for node, target in enumerate(best):
        renamed[target] = _matched(common[node][target])[1][names[node]]
    return np.asarray(np.ravel_multi_index(tuple(renamed), tuple(outcomes)))


def _common(reference: np.ndarray, other: np.ndarray, outcomes: Sequence[int]) -> list[list[np.ndarray]]:
    """Expected number of samples with each pair of outcomes, by node of `other` and node of `reference`."""
    n_cells = reference.shape[1]
    names = np.unravel_index(np.arange(n_cells), tuple(outcomes))
    pairs = sum(other[rows].T.astype(np.float64) @ reference[rows] for rows in row_blocks(len(other)))
    one_hot = [np.eye(size)[node] for size, node in zip(outcomes, names, strict=True)]
    return [[one.T @ pairs @ two for two in one_hot] for one in one_hot]


def _matched(table: np.ndarray) -> tuple[float, np.ndarray]:
    """Largest total of a matching of rows to columns (as many as there are), and the column of each row."""
    if table.shape[0] != table.shape[1]:
        return -np.inf, np.empty(0)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum()), columns


def node_agreement(reference: np.ndarray, other: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """Share of samples with the same outcome, per node `[L]`.

    Args:
        reference: Most probable cell of each sample, `[n]`.
        other: The same in another fit, aligned.
        outcomes: Outcomes per node.
    """
    one, two = (np.stack(np.unravel_index(cells, tuple(outcomes))) for cells in (reference, other))
    return (one == two).mean(axis=1)


def edge_frequency(adjacency: np.ndarray) -> np.ndarray:
    """Share of the graphs with the edge i -> j, `[L, L]`; of graphs `[K, L, L]`, row = cause, column = effect."""
    return (np.asarray(adjacency) != 0).mean(axis=0)


def adjacency_frequency(adjacency: np.ndarray) -> np.ndarray:
    """Share of the graphs with an edge between i and j, whichever its direction, `[L, L]` symmetric."""
    either = (np.asarray(adjacency) != 0) | (np.asarray(adjacency).swapaxes(1, 2) != 0)
    return either.mean(axis=0)
