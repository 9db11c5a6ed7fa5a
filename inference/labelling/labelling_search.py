"""All labellings of clusters that differ in meaning, for searches over them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from math import prod

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.identifiability.labellings import count_labellings, log10_labellings

__all__ = [
    "MOST_LABELLINGS",
    "as_tables",
    "check_number",
    "enumerate_labellings",
    "node_outcomes",
    "partition_codes",
    "rename_towards",
    "with_nodes",
]

MOST_LABELLINGS = 100_000


def enumerate_labellings(outcomes: Sequence[int], kinds: Sequence[Hashable] | None = None) -> np.ndarray:
    """One labelling of every class of those that differ only by names of outcomes, or by an exchange of alike nodes.

    The one kept has, at every node, outcomes in the order of their first cluster, and alike nodes in lexicographic
    order of the outcomes that they give to clusters 0, 1, ...

    Args:
        outcomes: Outcomes per node, `C_1, ..., C_L`.
        kinds: What is known of each node, for example its name; nodes of one kind with equally many outcomes are alike.
            None: all are of one kind, as in `count_labellings`.

    Returns:
        `[K, C]`: cluster c is cell `[k, c]`, row-major over the nodes' outcomes; K is `count_labellings`.

    Raises:
        ValueError: More than `MOST_LABELLINGS`.
    """
    check_number(outcomes, kinds)
    pairs = _alike(outcomes, kinds or [None] * len(outcomes))
    codes = np.array(np.unravel_index(np.arange(prod(outcomes)), tuple(outcomes)))
    found = (cells for cells in _in_first_seen_order(codes) if _is_ordered(codes[:, cells], pairs))
    return np.array(list(found))


def node_outcomes(labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The outcome of every node in every cluster, `[K, C]` -> `[K, L, C]`."""
    return np.stack(np.unravel_index(labellings, tuple(outcomes)), axis=-2)


def with_nodes(codes: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """The inverse of `node_outcomes`, `[..., L, C]` -> `[..., C]`."""
    found: np.ndarray = np.ravel_multi_index(tuple(np.moveaxis(codes, -2, 0)), tuple(outcomes))
    return found


def partition_codes(codes: np.ndarray) -> np.ndarray:
    """The outcomes of a node in every cluster `[..., C]`, renamed in the order of their first cluster."""
    flat = codes.reshape(-1, codes.shape[-1])
    first = (flat[:, :, None] == flat[:, None, :]).argmax(-1)
    met = (first == np.arange(flat.shape[-1])).cumsum(-1) - 1
    return np.take_along_axis(met, first, -1).reshape(codes.shape)


def rename_towards(labelling: np.ndarray, wanted: np.ndarray, outcomes: Sequence[int], mass: np.ndarray) -> np.ndarray:
    """The same labelling with the outcomes of each node renamed to agree with another one on as much mass as they can.

    Args:
        labelling: `[C]`.
        wanted: The other labelling, `[C]`.
        outcomes: Outcomes per node.
        mass: Mass of the clusters, `[C]`.
    """
    codes, others = (node_outcomes(entry, outcomes) for entry in (labelling, wanted))
    renamed = []
    for own, other, size in zip(codes, others, outcomes, strict=True):
        agreement = np.zeros((size, size))
        np.add.at(agreement, (own, other), mass)
        renamed.append(linear_sum_assignment(agreement, maximize=True)[1][own])
    return with_nodes(np.array(renamed), outcomes)


def as_tables(mass: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    """Mass of clusters as tables over the nodes, `[*batch, C]` and `[K, C]` -> `[K, *batch, C_1, ..., C_L]`."""
    by_cell = np.moveaxis(mass[..., np.argsort(labellings, axis=-1)], -2, 0)
    return by_cell.reshape(*by_cell.shape[:-1], *outcomes)


def _alike(outcomes: Sequence[int], kinds: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of neighbouring positions among alike nodes."""
    marks = list(zip(outcomes, kinds, strict=True))
    nodes = range(len(marks))
    return [(i, j) for i, j in combinations(nodes, 2) if marks[i] == marks[j] and marks[i] not in marks[i + 1 : j]]


def check_number(outcomes: Sequence[int], kinds: Sequence[Hashable] | None = None) -> None:
    """Refuse nodes with more labellings than can be searched.

    Raises:
        ValueError: There are more than `MOST_LABELLINGS`.
    """
    number = count_labellings(outcomes, kinds=kinds)
    if number is None or number > MOST_LABELLINGS:
        raise ValueError(
            f"nodes: expected at most {MOST_LABELLINGS} labellings of the cells to search, got about "
            f"1e{log10_labellings(outcomes, kinds=kinds):.0f} for nodes with {', '.join(map(str, outcomes))} outcomes; "
            "name the clusters by labels or by a mask, which need no search"
        )


def _in_first_seen_order(codes: np.ndarray) -> Iterator[list[int]]:
    """Bijections whose clusters meet the outcomes of every node in the order 0, 1, ...; cells as a list."""
    n_cells = codes.shape[1]
    cells: list[int] = []
    free = [True] * n_cells
    columns = [tuple(int(code) for code in column) for column in codes.T]

    def extend(seen: tuple[int, ...]) -> Iterator[list[int]]:
        if len(cells) == n_cells:
            yield list(cells)
        for cell in range(n_cells):
            if free[cell] and all(code <= most for code, most in zip(columns[cell], seen, strict=True)):
                free[cell] = False
                cells.append(cell)
                yield from extend(tuple(max(most, code + 1) for code, most in zip(columns[cell], seen, strict=True)))
                free[cell] = True
                cells.pop()

    yield from extend((0,) * len(codes))


def _is_ordered(by_node: np.ndarray, pairs: Sequence[tuple[int, int]]) -> bool:
    return all(tuple(by_node[i]) < tuple(by_node[j]) for i, j in pairs)
