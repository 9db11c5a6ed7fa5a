"""Which of several starts to keep: by how clear its clusters are, never by the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "DISAGREE_ARI",
    "NEAR_TIED_ENTROPY",
    "NEAR_TIED_SHARE",
    "TOO_UNCLEAR_ENTROPY",
    "UNCLEAR_ENTROPY",
    "Quality",
    "choose",
    "near_tied",
    "preference",
]

UNCLEAR_ENTROPY = 0.065
"""Mean entropy of q(N|X), in nats per sample, above which clusters are not clean."""

TOO_UNCLEAR_ENTROPY = 2 * UNCLEAR_ENTROPY
"""Mean entropy above which nothing is claimed of what a mask or a search would identify."""

NEAR_TIED_ENTROPY = 0.01
"""Starts whose entropy is so little above that of the chosen one, in nats per sample, could as well have been it."""

NEAR_TIED_SHARE = 0.1
"""The same as a share of the entropy of the chosen one; the larger margin counts."""

DISAGREE_ARI = 0.93
"""Below this adjusted Rand index, two starts found different clusters."""


class Quality(NamedTuple):
    """What a start is judged by.

    Attributes:
        is_ok: Whether its fit did not fail.
        n_occupied: Number of occupied cells.
        entropy: Mean entropy of q(N|X) in nats; None of a fit that diverged.
    """

    is_ok: bool
    n_occupied: int
    entropy: float | None


def preference(quality: Quality) -> tuple[bool, int, float]:
    """Sorts the best first: fits that did not fail, then most occupied cells, then lowest entropy.

    Occupied cells come before entropy, since one cluster that swallowed all others has entropy 0. The evidence lower
    bound is not asked: it can't tell a good clustering from one that merges two groups and splits a third.
    """
    return not quality.is_ok, -quality.n_occupied, float("inf") if quality.entropy is None else quality.entropy


def choose(starts: Sequence[Quality]) -> int:
    """Position of the start to keep; of equal ones the first.

    Raises:
        ValueError: There is none.
    """
    if not starts:
        raise ValueError("starts: expected one at least, got none; fit one")
    return min(range(len(starts)), key=lambda position: preference(starts[position]))


def near_tied(starts: Sequence[Quality], chosen: int) -> list[int]:
    """Positions of the other starts that could as well have been chosen.

    They did not fail, occupy as many cells, and their entropy exceeds the chosen one's by `NEAR_TIED_ENTROPY` nats or
    `NEAR_TIED_SHARE` of it at most.
    """
    best = starts[chosen]
    if not best.is_ok or best.entropy is None:
        return []
    margin = max(NEAR_TIED_ENTROPY, NEAR_TIED_SHARE * best.entropy)
    return [
        position
        for position, start in enumerate(starts)
        if position != chosen
        and start.is_ok
        and start.n_occupied == best.n_occupied
        and start.entropy is not None
        and start.entropy - best.entropy <= margin
    ]
