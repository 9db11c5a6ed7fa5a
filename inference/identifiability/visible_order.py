"""Which nodes are seen by the modalities that see another one: all that decides how cells can be relabelled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["VisibleOrder", "check_outcomes"]


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
