"""The number of labellings that side information leaves."""

from __future__ import annotations

from dataclasses import dataclass

from inference.identifiability.labellings import count_labellings, log10_labellings
from inference.identifiability.side_information import SideInformation

__all__ = ["Remaining", "count_remaining"]

_ROUNDING = 1e-9
_MOST_WRITTEN = 10**15


@dataclass(frozen=True)
class Remaining:
    """A number of labellings.

    Attributes:
        count: The number; None if it has more than 1000 digits.
        log10: Its decimal logarithm.
        is_exact: Whether it is the number itself, given that every cell occurs and modalities tell all their visible
            combinations apart; else an upper bound.
    """

    count: int | None
    log10: float
    is_exact: bool = True

    @property
    def is_one(self) -> bool:
        """Whether nothing remains to be settled."""
        return self.log10 < _ROUNDING

    def __str__(self) -> str:
        """The number, as one reads it: 840, or 10^13007."""
        if self.count is not None and self.count < _MOST_WRITTEN:
            return f"{self.count:,}".replace(",", " ") if self.count >= 10_000 else str(self.count)
        return f"10^{self.log10:.0f}"


def count_remaining(known: SideInformation) -> Remaining:
    """Count the labellings that fit equally well, modulo those that only rename or exchange what nothing names.

    Labels and masks: exactly, by `count_labellings`. Declared independence leaves one, but for shares of outcomes that
    happen to let another labelling be independent, too (as equal shares do): the logarithms of the masses of the cells
    are sums of one term per node, and for almost all terms no other arrangement of the same masses is such a sum.
    Environments that set a node mark the cells of every outcome, and count as labels of the node. What else
    environments say depends on the graph (other nodes keep their factors, which may tell some of them apart), so that
    with them the number is an upper bound: that of the unknown targets that leave most. Soft environments and tiers
    settle no labelling for certain, but name nodes, which are then no more exchanged.
    """
    if known.independent:
        return Remaining(1, 0.0)
    counts = [_count(known, nodes) for nodes in known.possible_known()]
    count, log10 = max(counts, key=lambda found: found[1])
    return Remaining(count, log10, not known.environments or log10 < _ROUNDING)


def _count(known: SideInformation, nodes: tuple[str, ...]) -> tuple[int | None, float]:
    outcomes, visible = known.outcomes, known.visible_positions
    labelled, kinds = known.positions(nodes), known.kinds()
    log10 = log10_labellings(outcomes, visible, labelled=labelled, kinds=kinds)
    return count_labellings(outcomes, visible, labelled=labelled, kinds=kinds), max(log10, 0.0)
