"""Cells of an ablation: named settings, from a grid of values, arms, or both."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Cell", "cells_of"]

# In bytes, as file systems count: letters outside of ASCII have up to four.
_LONGEST_FOLDER = 80


@dataclass(frozen=True)
class Cell:
    """One setting under which every seed is fitted.

    Attributes:
        name: How it is called in tables.
        flags: What distinguishes it: values by flag of `inference.svi`.
    """

    name: str
    flags: Mapping[str, str]

    @property
    def folder(self) -> str:
        """A name for its folder; what no file system minds stays as it is."""
        plain = re.sub(r"[^\w.,=+-]", "_", self.name).lstrip(".")
        start = plain.encode()[:_LONGEST_FOLDER].decode(errors="ignore")
        if start == self.name:
            return start
        return f"{start}-{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"


def cells_of(arms: Sequence[Cell], grid: Sequence[tuple[str, Sequence[str]]]) -> tuple[Cell, ...]:
    """Every arm with every combination of the grid's values; the last flag changes fastest.

    Args:
        arms: Named settings; none: the grid alone.
        grid: Values by flag, in order.

    Raises:
        ValueError: There is nothing to compare, a flag is varied twice, or an arm sets a flag that is varied.
    """
    names = [name for name, _ in grid]
    if len(set(names)) < len(names):
        raise ValueError(f"vary: expected every flag once, got {', '.join(names)}; give all its values at once")
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(values for _, values in grid))]
    cells = tuple(_joined(arm, point) for arm in arms or (Cell("", {}),) for point in points)
    if not arms and not grid:
        raise ValueError(
            "vary: expected something to compare, got nothing; for example --vary objective=collapsed,meanfield, "
            "or --arms FILE.yaml"
        )
    return cells


def _joined(arm: Cell, point: Mapping[str, str]) -> Cell:
    both = next((name for name in point if name in arm.flags), None)
    if both is not None:
        raise ValueError(
            f"vary: expected flags that no arm sets, got {both}, which {arm.name} sets; leave it out of one of the two"
        )
    words = [arm.name] if arm.name else []
    return Cell(",".join([*words, *(f"{name}={value}" for name, value in point.items())]), {**arm.flags, **point})
