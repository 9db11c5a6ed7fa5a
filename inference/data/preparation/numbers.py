"""Entries of the manifest as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["parse_number", "whole_numbers"]


def parse_number(entry: str, decimal: str = ".") -> float | None:
    """The finite number that stands there, else None.

    >>> parse_number("2,5", ","), parse_number("1e3"), parse_number("n.d."), parse_number("inf")
    (2.5, 1000.0, None, None)
    """
    try:
        value = float(entry.replace(decimal, "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def whole_numbers(entries: Sequence[str]) -> np.ndarray | None:
    """The entries as int64, if all of them are written as whole numbers."""
    if not all(entry.removeprefix("-").isdecimal() and len(entry) < 18 for entry in entries):
        return None
    return np.array([int(entry) for entry in entries], dtype=np.int64)
