"""Cells of an ablation: named settings, from a grid of values, a file of arms, or both."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from inference.ablation.assignments import value_text

__all__ = ["Cell", "cells_of", "read_arms"]

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
        if plain == self.name and len(plain) <= _LONGEST_FOLDER:
            return plain
        return f"{plain[:_LONGEST_FOLDER]}-{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"


def cells_of(arms: Sequence[Cell], grid: Sequence[tuple[str, Sequence[str]]]) -> tuple[Cell, ...]:
    """Every arm with every combination of the grid's values; the last flag changes fastest.

    Args:
        arms: Named settings; none: the grid alone.
        grid: Values by flag, in order.

    Raises:
        ValueError: There is nothing to compare, or a flag is varied twice.
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
    words = [arm.name] if arm.name else []
    return Cell(",".join([*words, *(f"{name}={value}" for name, value in point.items())]), {**arm.flags, **point})


def read_arms(path: Path) -> tuple[Cell, ...]:
    """The arms of a YAML file: settings by flag, below the name of each arm.

    Raises:
        ValueError: The file cannot be read, or holds something else.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "problem", None) or "it is no text"
        raise ValueError(f"arms: expected a readable YAML file, got {path} ({reason}); name another") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f"arms: expected settings below the name of each arm in {path}, got none; see docs/ablate.md")
    return tuple(_arm(path, name, flags) for name, flags in content.items())


def _arm(path: Path, name: object, flags: object) -> Cell:
    if not isinstance(flags, dict | None):
        raise ValueError(
            f"arms: expected values by flag for {name} in {path}, got {flags!r}; write {name}: {{training.epochs: 5}}"
        )
    return Cell(str(name), {str(flag): value_text(value) for flag, value in (flags or {}).items()})
