"""How many ways there are to read clusters as joint outcomes of nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

__all__ = [
    "Recount",
    "VisibleOrder",
    "check_outcomes",
    "count_labellings",
    "equivalent_labellings",
    "log10_labellings",
    "recount",
]


# Which nodes are seen by the modalities that see another one: all that decides how cells can be relabelled.


@dataclass(frozen=True)
class VisibleOrder:
    """Nodes ordered by which modalities see them.

    A relabelling of the cells keeps the likelihood if, for every modality m, it maps cells that m can't tell apart to
    cells that m can't tell apart: it preserves the partition P(S_m) of the cells by the outcomes of the nodes S_m that
    m sees. Who preserves P(S) and P(T) preserves P(S and T) and P(S or T), too: the sets form a distributive lattice,
    that of the down-sets of the order "j is seen by every modality that sees i" (Birkhoff). The relabellings are then
    the generalised wreath product over this order (Bailey, Praeger, Rowley, Speed 1983): nodes that the same
    modalities see are permuted jointly, anew for every outcome of the nodes below them.

    Attributes:
        outcomes: Outcomes of each node, `C_1, ..., C_L`.
        seen_by: For each node the modalities that see it; labels are a modality that sees its node alone.
        labelled: Nodes whose outcome is known for every cell.
    """

    outcomes: tuple[int, ...]
    seen_by: tuple[frozenset[Hashable], ...]
    labelled: frozenset[int]

    @classmethod
    def of(
        cls, outcomes: Sequence[int], visible: Iterable[Collection[int]] | None, labelled: Collection[int] = ()
    ) -> VisibleOrder:
        """The order of a mask; arguments as of `count_labellings`.

        Raises:
            ValueError: As `count_labellings`.
        """
        check_outcomes(outcomes)
        n_nodes = len(outcomes)
        sets: list[Collection[int]] = [range(n_nodes)] if visible is None else list(visible)
        _check_nodes("visible", (node for nodes in sets for node in nodes), n_nodes)
        _check_nodes("labelled", labelled, n_nodes)
        modalities = [_seen_by(node, sets) for node in range(n_nodes)]
        if not all(modalities):
            unseen = modalities.index(frozenset())
            raise ValueError(f"visible: expected every node in one set at least, got none with node {unseen}")
        labels = (frozenset({("label", node)} if node in labelled else ()) for node in range(n_nodes))
        seen_by = tuple(seen | label for seen, label in zip(modalities, labels, strict=True))
        return cls(tuple(outcomes), seen_by, frozenset(labelled))

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """Nodes that the same modalities see, in order."""
        members: dict[frozenset[Hashable], list[int]] = {}
        for node, seen in enumerate(self.seen_by):
            members.setdefault(seen, []).append(node)
        return [tuple(nodes) for nodes in members.values()]

    def below(self, node: int) -> tuple[int, ...]:
        """Nodes that every modality sees that sees this one, and another one besides."""
        return tuple(other for other, seen in enumerate(self.seen_by) if seen > self.seen_by[node])

    def is_fixed(self, node: int) -> bool:
        """Whether every relabelling keeps the node, up to the names of its outcomes: it is an intersection of masks."""
        return self.seen_by.count(self.seen_by[node]) == 1 and not self.below(node)

    def factors(self) -> list[tuple[int, int]]:
        r"""Pairs (n, k) so that there are $\prod n!^k$ relabellings."""
        free = [group for group in self.groups if not self.labelled & set(group)]
        return [(self._cells(group), self._cells(self.below(group[0]))) for group in free]

    def renamings(self, kinds: Sequence[Hashable]) -> list[int]:
        r"""Numbers n so that $\prod n!$ of the relabellings only rename outcomes and exchange nodes.

        Args:
            kinds: Only nodes of the same kind are exchanged, `[L]`.
        """
        free = [node for node in range(len(self.outcomes)) if node not in self.labelled]
        alike = Counter((self.seen_by[node], self.outcomes[node], kinds[node]) for node in free)
        return [self.outcomes[node] for node in free] + list(alike.values())

    def _cells(self, nodes: Iterable[int]) -> int:
        return math.prod(self.outcomes[node] for node in nodes)


def check_outcomes(outcomes: Sequence[int]) -> None:
    """Refuse what are no nodes.

    Raises:
        ValueError: There is no node, or one has fewer than two outcomes.
    """
    if not outcomes or min(outcomes) < 2:
        raise ValueError(f"outcomes: expected at least 2 per node, got {tuple(outcomes)}; leave out constant nodes")


def _seen_by(node: int, sets: Iterable[Collection[int]]) -> frozenset[Hashable]:
    return frozenset(modality for modality, nodes in enumerate(sets) if node in nodes)


def _check_nodes(name: str, nodes: Iterable[int], n_nodes: int) -> None:
    unknown = sorted(set(nodes) - set(range(n_nodes)))
    if unknown:
        raise ValueError(f"{name}: expected positions of nodes, 0..{n_nodes - 1}, got {unknown[0]}")


_MOST_DIGITS = 1000


def count_labellings(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None = None,
    *,
    labelled: Collection[int] = (),
    kinds: Sequence[Hashable] | None = None,
) -> int | None:
    r"""Count the labellings, bijections from clusters to cells, that leave the likelihood unchanged.

    With free means and a complete DAG, a labelling can be followed by every relabelling of the cells that preserves
    what each modality can tell apart (`VisibleOrder`). Labellings that differ only by renaming outcomes inside a node,
    or by exchanging nodes that the same modalities see, mean the same, so that

    $$\frac{\prod_g \bigl[\bigl(\prod_{\ell \in g} C_\ell\bigr)!\bigr]^{\prod_{j < g} C_j}}
           {\prod_\ell C_\ell!\ \prod_k g_k!}$$

    labellings remain, g over groups of nodes that the same modalities see, j < g over the nodes that all of these
    modalities see besides, g_k over numbers of nodes that can be exchanged. It is assumed that every cell occurs, and
    that each modality tells all its visible combinations apart: where this fails there are more (`recount`).

    Args:
        outcomes: Outcomes of each node, `C_1, ..., C_L`, each at least 2.
        visible: Nodes that each modality sees, by position; None: one modality that sees all.
        labelled: Nodes whose outcome is known for every cell, as from labels.
        kinds: What else tells nodes apart, `[L]`: only nodes of equal kind are exchanged.

    Returns:
        The exact number, 1 if all nodes are fixed; None if it has more than 1000 digits.

    Raises:
        ValueError: If there is no node, one has fewer than two outcomes, is seen by no modality, or is not there.

    Example:
        >>> count_labellings((2, 2)), count_labellings((2, 2, 2))
        (3, 840)
        >>> count_labellings((2, 2, 2), [{0, 1}, {1, 2}]), count_labellings((2, 2, 2), [{0, 1}, {1, 2}, {0, 2}])
        (4, 1)
    """
    order, kinds = _order(outcomes, visible, labelled, kinds)
    if _log10(order, kinds) > _MOST_DIGITS:
        return None
    return math.prod(math.factorial(n) ** k for n, k in order.factors()) // math.prod(
        map(math.factorial, order.renamings(kinds))
    )


def log10_labellings(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None = None,
    *,
    labelled: Collection[int] = (),
    kinds: Sequence[Hashable] | None = None,
) -> float:
    """Decimal logarithm of `count_labellings`, however large; 0 to rounding if one is left.

    Args:
        outcomes: See there.
        visible: See there.
        labelled: See there.
        kinds: See there.

    Raises:
        ValueError: As there.
    """
    return _log10(*_order(outcomes, visible, labelled, kinds))


def equivalent_labellings(outcomes: Sequence[int]) -> int:
    """The labellings of one modality that sees all nodes, `C! / (prod C_l! prod g_k!)`, in full.

    Args:
        outcomes: Outcomes of each node, each at least 2.

    Raises:
        ValueError: If there is no node, or a node has fewer than two outcomes.

    Example:
        >>> equivalent_labellings((2, 2)), equivalent_labellings((2, 2, 2))
        (3, 840)
    """
    check_outcomes(outcomes)
    renamings = math.prod(map(math.factorial, outcomes))
    exchanges = math.prod(map(math.factorial, Counter(outcomes).values()))
    return math.factorial(math.prod(outcomes)) // (renamings * exchanges)


def _order(
    outcomes: Sequence[int],
    visible: Iterable[Collection[int]] | None,
    labelled: Collection[int],
    kinds: Sequence[Hashable] | None,
) -> tuple[VisibleOrder, Sequence[Hashable]]:
    if kinds is not None and len(kinds) != len(outcomes):
        raise ValueError(f"kinds: expected one per node, {len(outcomes)}, got {len(kinds)}")
    return VisibleOrder.of(outcomes, visible, labelled), kinds or [None] * len(outcomes)


def _log10(order: VisibleOrder, kinds: Sequence[Hashable]) -> float:
    # Down-sets can be astronomically many cells: k as a float, not n! ** k.
    logs = math.fsum(float(k) * math.lgamma(n + 1) for n, k in order.factors())
    return (logs - math.fsum(math.lgamma(n + 1) for n in order.renamings(kinds))) / math.log(10)


# The labellings that remain of the cells and levels that a fit really found.


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
