"""Keeping the numbers of cells from one read-out to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, permutations, product

import numpy as np
import scipy

from causalpima.inference.clusters.clustering import ReadOut, row_blocks
from causalpima.inference.clusters.counting import VisibleOrder

__all__ = [
    "adjacency_frequency",
    "align_cells",
    "align_nodes",
    "ari",
    "edge_frequency",
    "match_cells",
    "match_nodes",
    "nearest_allowed",
    "nearest_renaming",
    "node_agreement",
    "pairwise_ari",
    "relabel",
]


def match_cells(previous: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The numbers that the cells of `new` should bear so that they agree with `previous` as well as they can.

    Maximises sum_n sum_c new[n, c] previous[n, permutation[c]], the expected number of samples that keep their cell,
    over all bijections (Hungarian algorithm).

    Args:
        previous: Responsibilities of the cells as they are numbered so far, `[n, C]`.
        new: Responsibilities of the same samples under another read-out, `[n, C]`.

    Returns:
        `permutation` `[C]`: cell c of `new` becomes cell `permutation[c]`, as `relabel` takes it. Responsibilities in
        the old numbering are `new[:, np.argsort(permutation)]`.

    Raises:
        ValueError: If the two differ in shape or hold values that are not finite.
    """
    if previous.ndim != 2 or previous.shape != new.shape:
        raise ValueError(f"new: expected [sample, cell] of the shape of previous, {previous.shape}, got {new.shape}")
    for name, values in (("previous", previous), ("new", new)):
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: expected finite responsibilities, got NaN or infinity")
    common = sum(new[rows].T.astype(np.float64) @ previous[rows] for rows in row_blocks(len(new)))
    return scipy.optimize.linear_sum_assignment(common, maximize=True)[1]


def relabel(read_out: ReadOut, permutation: np.ndarray) -> ReadOut:
    """The same read-out with cell c renamed to `permutation[c]`.

    Args:
        read_out: A read-out with C cells.
        permutation: New number of each cell, `[C]`, each of 0..C-1 once.

    Returns:
        A read-out with the same components, entropy and candidates, whose cells bear their new numbers.

    Raises:
        ValueError: If `permutation` is no permutation of 0..C-1.
    """
    if not np.array_equal(np.sort(permutation), np.arange(read_out.n_cells)):
        raise ValueError(
            f"permutation: expected each of 0..{read_out.n_cells - 1} once, got {np.asarray(permutation).tolist()}"
        )
    return replace(read_out, component_cell=np.asarray(permutation)[read_out.component_cell])


# Keeping the numbers of cells from one read-out under a mask to the next, by nodes rather than by cells.


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
    matched = scipy.optimize.linear_sum_assignment(table, maximize=True)[1]
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
        renamed[target] = scipy.optimize.linear_sum_assignment(table.sum(axis=others), maximize=True)[1][values[node]]
    permutation: np.ndarray = np.ravel_multi_index(renamed, tuple(outcomes))
    return permutation


# How far several fits of the same samples agree: clusters, cells, nodes, edges.


def ari(one: np.ndarray, other: np.ndarray) -> float:
    """Rand index adjusted for chance, of two clusterings of the same samples."""
    from sklearn.metrics import adjusted_rand_score  # late: half a second that only clustering needs

    return float(adjusted_rand_score(one, other))


def pairwise_ari(cells: Sequence[np.ndarray]) -> np.ndarray:
    """Adjusted Rand index of every pair of clusterings, `[K, K]`, the diagonal 1; it does not ask for names.

    Args:
        cells: Most probable cell of each sample, `[n]` per fit.
    """
    table = np.eye(len(cells))
    for i, one in enumerate(cells):
        for j in range(i):
            table[i, j] = table[j, i] = ari(one, cells[j])
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
    rows, columns = scipy.optimize.linear_sum_assignment(table, maximize=True)
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
