"""Keeping the numbers of cells from one read-out under a mask to the next, by nodes rather than by cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, permutations, product

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.clusters.read_out import row_blocks
from inference.identifiability.visible_order import VisibleOrder

__all__ = ["match_nodes", "nearest_allowed", "nearest_renaming"]

_MOST_ORDERS = 720
_TIE = 1e-6


def match_nodes(
    previous: np.ndarray, new: np.ndarray, outcomes: Sequence[int], visible: Sequence[Sequence[int]]
) -> np.ndarray:
    """The numbers that the cells of `new` should bear so that nodes and outcomes agree with `previous`.

    Under a mask the levels of every modality must stay what they are, so that cells may be renamed only by renaming the
    outcomes of a node and by exchanging nodes that the same modalities see. Outcomes are matched node by node
    (Hungarian algorithm on the expected number of samples that agree); of the exchanges, the one is taken under which
    most samples keep their cell.

    Args:
        previous: Responsibilities of the cells as they are numbered so far, `[n, C]`.
        new: Responsibilities of the same samples under another read-out, `[n, C]`.
        outcomes: Number of outcomes per node.
        visible: Per modality, positions of the nodes that it sees.

    Returns:
        `permutation` `[C]`: cell c of `new` becomes cell `permutation[c]`, as `matching.relabel` takes it.

    Raises:
        ValueError: If the two differ in shape, or are no responsibilities of the cells of these nodes.
    """
    n_cells = math.prod(outcomes)
    if previous.shape != new.shape or new.ndim != 2 or new.shape[1] != n_cells:
        raise ValueError(
            f"new: expected [sample, {n_cells}] of the shape of previous, {previous.shape}, got {new.shape}"
        )
    common = sum(new[rows].T.astype(np.float64) @ previous[rows] for rows in row_blocks(len(new)))
    return _best(common, outcomes, visible)


def nearest_allowed(agreement: np.ndarray, outcomes: Sequence[int], visible: Sequence[Sequence[int]]) -> np.ndarray:
    """The relabelling that a mask leaves open under which cells agree best with what is known of them.

    Open are all relabellings that keep what every modality tells apart: the joint outcomes of nodes that the same
    modalities see are renamed anew for every outcome of the nodes below them (`VisibleOrder`). Nodes that most
    modalities see are matched first, by the agreement that all their cells have together; then, within each of their
    outcomes, those above them (Hungarian algorithm each).

    Args:
        agreement: How well cell c agrees with being cell k, for example counts of labels, `[C, C]`.
        outcomes: Number of outcomes per node.
        visible: Per modality, positions of the nodes that it sees.

    Returns:
        `permutation` `[C]`: cell c becomes cell `permutation[c]`.
    """
    order = VisibleOrder.of(outcomes, visible)
    cells = np.stack(np.unravel_index(np.arange(len(agreement)), tuple(outcomes)), axis=1)
    renamed = np.zeros_like(cells)
    kept = agreement + _TIE * max(float(np.abs(agreement).max()), 1.0) * np.eye(len(agreement)) / len(agreement)
    for group in sorted(order.groups, key=lambda nodes: len(order.below(nodes[0]))):
        nodes, below = list(group), list(order.below(group[0]))
        for context in np.unique(cells[:, below], axis=0):
            rows = (cells[:, below] == context).all(1)
            columns = (cells[:, below] == renamed[rows.argmax(), below]).all(1)
            renamed[np.ix_(rows, nodes)] = _renamed_outcomes(kept, cells[:, nodes], rows, columns)
    return np.ravel_multi_index(tuple(renamed.T), tuple(outcomes))


def nearest_renaming(agreement: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The exchange of nodes and the names of their outcomes under which cells agree best with what is known of them.

    Args:
        agreement: How well cell c agrees with being cell k, for example counts of labels, `[C, C]`.
        outcomes: Number of outcomes per node.

    Returns:
        `permutation` `[C]`: cell c becomes cell `permutation[c]`.
    """
    return _best(agreement, outcomes, [range(len(outcomes))])


def _renamed_outcomes(agreement: np.ndarray, outcomes: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """New joint outcomes of a group of nodes for the cells in `rows`, which go to those in `columns`."""
    levels = np.unique(outcomes, axis=0)
    of_rows = (outcomes[rows][:, None] == levels).all(-1).astype(float)
    of_columns = (outcomes[columns][:, None] == levels).all(-1).astype(float)
    table = of_rows.T @ agreement[np.ix_(rows, columns)] @ of_columns
    matched = linear_sum_assignment(table, maximize=True)[1]
    found: np.ndarray = levels[matched[of_rows.argmax(1)]]
    return found


def _best(common: np.ndarray, outcomes: Sequence[int], visible: Sequence[Sequence[int]]) -> np.ndarray:
    """The allowed permutation under which most samples agree, `common[c, d]` of which are in cells c and d."""
    found = [_match(common, outcomes, order) for order in _orders(outcomes, visible)]
    return max(found, key=lambda permutation: float(common[np.arange(len(common)), permutation].sum()))


def _orders(outcomes: Sequence[int], visible: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """All exchanges of nodes that no modality tells apart; the identity first, and alone where there are too many."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for node, n_outcomes in enumerate(outcomes):
        seen_by = tuple(node in nodes for nodes in visible)
        groups.setdefault((n_outcomes, *seen_by), []).append(node)
    members = list(groups.values())
    count = math.prod(math.factorial(len(group)) for group in members)
    arranged = product(*(permutations(group) for group in members)) if count <= _MOST_ORDERS else [map(tuple, members)]
    for choice in arranged:
        order = dict(zip(chain(*members), chain(*choice), strict=True))
        yield tuple(order[node] for node in range(len(outcomes)))


def _match(common: np.ndarray, outcomes: Sequence[int], order: Sequence[int]) -> np.ndarray:
    """Permutation of cells where node l of the new read-out is node `order[l]` of the previous one."""
    table = common.reshape(*outcomes, *outcomes)
    n_nodes = len(outcomes)
    values = np.unravel_index(np.arange(math.prod(outcomes)), tuple(outcomes))
    renamed = [np.zeros(0, dtype=int)] * n_nodes
    for node, target in enumerate(order):
        others = tuple(axis for axis in range(2 * n_nodes) if axis not in (node, n_nodes + target))
        renamed[target] = linear_sum_assignment(table.sum(axis=others), maximize=True)[1][values[node]]
    permutation: np.ndarray = np.ravel_multi_index(renamed, tuple(outcomes))
    return permutation
