"""The labellings that remain of the cells and levels that a fit really found."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from inference.identifiability.labellings import count_labellings
from inference.identifiability.visible_order import VisibleOrder

__all__ = ["Recount", "recount"]

_MOST_STEPS = 200_000

Cell = tuple[int, ...]


@dataclass(frozen=True)
class Recount:
    """A number of labellings, or a lower bound of it.

    Attributes:
        count: The exact number, or None.
        at_least: A lower bound: `count` where it is known.
        reason: Why there is no exact number; empty where there is.
    """

    count: int | None
    at_least: int
    reason: str = ""


def recount(
    outcomes: Sequence[int],
    visible: Sequence[Collection[int]] | None = None,
    occupied_cells: Collection[Sequence[int]] | None = None,
    levels: Sequence[Sequence[int]] | None = None,
    *,
    labelled: Collection[int] = (),
    most_steps: int = _MOST_STEPS,
) -> Recount:
    """Count the labellings that fit the cells and levels that were found as well as the present one does.

    A labelling gives every occupied cell a cell of its own, so that two of them that a modality would not see apart
    have the same level in it. Cells that are empty, and levels that are alike, leave more of these than
    `count_labellings` says. Labellings that differ only by names of outcomes, or by an exchange of nodes that the same
    modalities see, are counted once.

    Args:
        outcomes: Outcomes of each node, `[L]`.
        visible: Nodes that each modality sees, by position; None: one modality that sees all.
        occupied_cells: The outcomes of every cell that occurs, `[O, L]`; None: all cells.
        levels: For each modality the number of the level of each occupied cell, `[M][O]`, where cells bear the same
            number that the modality does not tell apart; None: all visible combinations are told apart.
        labelled: Nodes whose outcome is known for every cell.
        most_steps: Work after which the search gives up, with what it has counted as a lower bound.

    Raises:
        ValueError: A cell is not there, or given twice; levels that are not one per cell, or that differ between cells
            whose visible outcomes agree; what `count_labellings` refuses.

    Example:
        >>> recount((2, 2, 2), [{0, 1}, {1, 2}]).count
        4
        >>> recount((2, 2), occupied_cells=[(0, 0), (0, 1), (1, 0)]).count
        3
    """
    order = VisibleOrder.of(outcomes, visible, labelled)
    sets = [tuple(range(len(outcomes)))] if visible is None else [tuple(sorted(nodes)) for nodes in visible]
    cells = _occupied(outcomes, occupied_cells)
    plain = [[_seen(cell, nodes) for cell in cells] for nodes in sets]
    found = plain if levels is None else _checked(levels, plain)
    if alike := _alike(cells, found):
        return Recount(None, 1, f"cells {alike[0]} and {alike[1]} have the same level in every modality")
    if _each_node_alone(outcomes, sets, found, labelled):
        return Recount(1, 1)
    if len(cells) == math.prod(outcomes) and all(map(_tells_the_same, found, plain)):
        count = count_labellings(outcomes, visible, labelled=labelled)
        return Recount(count, count or 1, "" if count else "the number has more than 1000 digits")
    return _Search(order, sets, cells, found, most_steps).result()


def _each_node_alone(
    outcomes: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    found: Sequence[Sequence[Hashable]],
    labelled: Collection[int],
) -> bool:
    """Whether every node has labels, or a modality that sees it alone and tells all its outcomes apart.

    Then the levels of these modalities are the outcomes, whichever cells occur: one labelling is left, and no search,
    which many cells would make too long.
    """
    told = {nodes[0] for nodes, levels in zip(sets, found, strict=True) if _tells_one(nodes, levels, outcomes)}
    return told | set(labelled) >= set(range(len(outcomes)))


def _tells_one(nodes: tuple[int, ...], levels: Sequence[Hashable], outcomes: Sequence[int]) -> bool:
    return len(nodes) == 1 and len(set(levels)) == outcomes[nodes[0]]


def _occupied(outcomes: Sequence[int], occupied: Collection[Sequence[int]] | None) -> list[Cell]:
    every = list(product(*map(range, outcomes)))
    cells = every if occupied is None else [tuple(map(int, cell)) for cell in occupied]
    bad = [cell for cell in cells if cell not in set(every)]
    if bad or not cells or len(set(cells)) < len(cells):
        raise ValueError(
            f"occupied_cells: expected cells of {tuple(outcomes)} outcomes, each once, got {bad[0] if bad else cells}"
        )
    return cells


def _seen(cell: Cell, nodes: Sequence[int]) -> Cell:
    return tuple(cell[node] for node in nodes)


def _checked(levels: Sequence[Sequence[int]], plain: Sequence[Sequence[Cell]]) -> Sequence[Sequence[int]]:
    if [len(each) for each in levels] != [len(each) for each in plain]:
        raise ValueError(
            f"levels: expected {len(plain[0])} cells for each of {len(plain)} modalities, "
            f"got {[len(each) for each in levels]}"
        )
    for modality, (found, seen) in enumerate(zip(levels, plain, strict=True)):
        if len(set(zip(seen, found, strict=True))) > len(set(seen)):
            raise ValueError(
                f"levels: expected one level for cells with equal visible outcomes, got several in modality {modality}"
            )
    return levels


def _alike(cells: Sequence[Cell], levels: Sequence[Sequence[Hashable]]) -> tuple[Cell, Cell] | None:
    """Two cells that no modality tells apart."""
    first: dict[tuple[Hashable, ...], Cell] = {}
    for cell, signature in zip(cells, zip(*levels, strict=True), strict=True):
        if signature in first:
            return first[signature], cell
        first[signature] = cell
    return None


def _tells_the_same(found: Sequence[Hashable], seen: Sequence[Cell]) -> bool:
    return len(set(found)) == len(set(seen))


class _Search:
    """All labellings, one of each class: outcomes are named in the order of their first use, exchangeable nodes sorted.

    Args:
        order: Nodes and who sees them.
        sets: Nodes of each modality.
        cells: The occupied cells, `[O]`.
        levels: Their levels, `[M][O]`.
        most_steps: Cells that are tried before it gives up.
    """

    def __init__(
        self,
        order: VisibleOrder,
        sets: Sequence[Sequence[int]],
        cells: Sequence[Cell],
        levels: Sequence[Sequence[Hashable]],
        most_steps: int,
    ) -> None:
        self.order, self.sets, self.cells, self.levels = order, sets, cells, levels
        self.left = most_steps
        self.level_of: list[dict[Cell, Hashable]] = [{} for _ in sets]
        self.taken: list[Cell] = []
        self.twins = [
            pair
            for group in order.groups
            for pair in pairwise(sorted(group, key=lambda node: order.outcomes[node]))
            if order.outcomes[pair[0]] == order.outcomes[pair[1]]
        ]

    def result(self) -> Recount:
        """The count, or how far it came."""
        count = self._count(frozenset(self.twins))
        if self.left > 0:
            return Recount(count, count)
        return Recount(None, max(count, 1), f"counting stopped at {count}")

    def _count(self, tied: frozenset[tuple[int, int]]) -> int:
        """Ways to go on; `tied` are neighbouring exchangeable nodes whose outcomes were equal so far."""
        if len(self.taken) == len(self.cells):
            return 1
        total = 0
        for cell in self._next_cells(tied):
            self.left -= 1
            if self.left <= 0:
                break
            if cell not in self.taken and (added := self._place(cell)) is not None:
                total += self._count(frozenset(pair for pair in tied if cell[pair[0]] == cell[pair[1]]))
                self._take_back(added)
        return total

    def _next_cells(self, tied: frozenset[tuple[int, int]]) -> Iterator[Cell]:
        present = self.cells[len(self.taken)]
        choices = [self._choices(node, present) for node in range(len(present))]
        return (cell for cell in product(*choices) if all(cell[a] <= cell[b] for a, b in tied))

    def _choices(self, node: int, present: Cell) -> Sequence[int]:
        if node in self.order.labelled:
            return [present[node]]
        used = max((cell[node] for cell in self.taken), default=-1)
        return range(min(used + 2, self.order.outcomes[node]))

    def _place(self, cell: Cell) -> list[int] | None:
        """Put the next occupied cell there; None if it can't be, else the modalities that see something new."""
        position, added = len(self.taken), []
        for modality, nodes in enumerate(self.sets):
            seen, level = _seen(cell, nodes), self.levels[modality][position]
            if seen not in self.level_of[modality]:
                self.level_of[modality][seen] = level
                added.append(modality)
            elif self.level_of[modality][seen] != level:
                self._forget(cell, added)
                return None
        self.taken.append(cell)
        return added

    def _take_back(self, added: Sequence[int]) -> None:
        self._forget(self.taken.pop(), added)

    def _forget(self, cell: Cell, modalities: Sequence[int]) -> None:
        for modality in modalities:
            del self.level_of[modality][_seen(cell, self.sets[modality])]
