"""Several starts of one fit side by side: which one is kept, and how far their clusters agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inference.clusters.agreement import pairwise_ari
from inference.clusters.choice import DISAGREE_ARI, Quality, choose, near_tied
from inference.clusters.occupancy import count_occupied
from inference.results.restart_arrays import FoundStart

__all__ = ["Comparison"]


@dataclass(frozen=True)
class Comparison:
    """Starts of one configuration on the same samples, numbered from 0.

    Attributes:
        starts: All of them, in order.
        qualities: What each is judged by.
        cells: Most probable cell of every sample, `[n]`; None of a start that diverged.
    """

    starts: Sequence[FoundStart]
    qualities: Sequence[Quality]
    cells: Sequence[np.ndarray | None]

    @classmethod
    def of(cls, starts: Sequence[FoundStart]) -> Comparison:
        """Look at the clusters of every start, one after the other."""
        looked = [_look_at(start) for start in starts]
        return cls(starts, [quality for quality, _ in looked], [cells for _, cells in looked])

    @cached_property
    def chosen(self) -> int:
        """Number of the start that is kept."""
        return choose(self.qualities)

    @cached_property
    def near_tied(self) -> list[int]:
        """Numbers of the other starts that could as well have been chosen."""
        return near_tied(self.qualities, self.chosen)

    @cached_property
    def disagreeing(self) -> list[int]:
        """Those of them that found other clusters than the chosen one."""
        return [number for number in self.near_tied if self.ari[number, self.chosen] < DISAGREE_ARI]

    @cached_property
    def ari(self) -> np.ndarray:
        """Adjusted Rand index of every pair, `[K, K]`; NaN with one that diverged."""
        table = np.full((len(self.starts),) * 2, np.nan)
        there = [number for number, cells in enumerate(self.cells) if cells is not None]
        table[np.ix_(there, there)] = pairwise_ari([cells for cells in self.cells if cells is not None])
        return table

    @cached_property
    def chain(self) -> list[int]:
        """Numbers of the starts that become chains: the chosen one, then the others that did not fail."""
        others = [start.number for start in self.starts if start.status == "ok" and start.number != self.chosen]
        return [self.chosen, *others]


def _look_at(start: FoundStart) -> tuple[Quality, np.ndarray | None]:
    if start.file is None:
        return Quality(False, 0, None), None
    responsibilities = start.read().responsibilities
    quality = Quality(start.status == "ok", count_occupied(responsibilities), start.summary["clusters"]["entropy"])
    return quality, responsibilities.argmax(1)
