"""Labellings by trying all bijections: the oracle of the counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import permutations, product

import numpy as np

__all__ = ["cells_of", "count_by_trying", "relabellings", "trivial_relabellings"]


def cells_of(outcomes: Sequence[int]) -> np.ndarray:
    """Outcome of every node in every cell, `[C, L]`, row-major."""
    return np.array(list(product(*map(range, outcomes))))


def _same(cells: np.ndarray, nodes: Collection[int]) -> np.ndarray:
    """Which two cells have the same outcomes of these nodes, `[C, C]`."""
    part = cells[:, sorted(nodes)]
    return (part[:, None, :] == part[None, :, :]).all(-1)


def relabellings(
    outcomes: Sequence[int], visible: Sequence[Collection[int]], labelled: Collection[int] = ()
) -> np.ndarray:
    """All bijections of the cells that map the partition of each modality to itself, `[G, C]`, and keep labels."""
    cells = cells_of(outcomes)
    tried = np.array(list(permutations(range(len(cells)))), dtype=np.int8)
    return tried[_keeps(tried, cells, visible, labelled)]


def _keeps(
    tried: np.ndarray, cells: np.ndarray, visible: Sequence[Collection[int]], labelled: Collection[int]
) -> np.ndarray:
    good = np.ones(len(tried), dtype=bool)
    for nodes in visible:
        same = _same(cells, nodes)
        good &= (same[tried[:, :, None], tried[:, None, :]] == same).all((1, 2))
    for node in labelled:
        good &= (cells[tried, node] == cells[:, node]).all(1)
    return good


def trivial_relabellings(outcomes: Sequence[int]) -> np.ndarray:
    """Exchanges of nodes with equally many outcomes, followed by renamings of outcomes inside nodes, `[T, C]`."""
    cells = cells_of(outcomes)
    number = {tuple(cell): position for position, cell in enumerate(cells.tolist())}
    exchanges = [
        order
        for order in permutations(range(len(outcomes)))
        if all(outcomes[a] == outcomes[b] for a, b in enumerate(order))
    ]
    renamings = list(product(*(list(permutations(range(n))) for n in outcomes)))
    return np.array(
        [
            [number[tuple(names[l][cell[order[l]]] for l in range(len(outcomes)))] for cell in cells.tolist()]
            for order in exchanges
            for names in renamings
        ]
    )


def count_by_trying(outcomes: Sequence[int], visible: Sequence[Collection[int]], labelled: Collection[int] = ()) -> int:
    """Number of classes of bijections, those that are trivial relabellings of each other counted once."""
    kept = relabellings(outcomes, visible, labelled)
    trivial = trivial_relabellings(outcomes)
    trivial = trivial[_keeps(trivial, cells_of(outcomes), visible, labelled)]
    # One representative of each class: the smallest among trivial-after-kept, by lexicographic order.
    codes = np.stack([_code(each[kept]) for each in trivial])
    return len(np.unique(codes.min(0)))


def _code(maps: np.ndarray) -> np.ndarray:
    """A number for every bijection."""
    base = maps.shape[1]
    return (maps.astype(np.int64) * base ** np.arange(base, dtype=np.int64)).sum(1)
