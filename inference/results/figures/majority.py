"""What is known about the samples of a cell, in a few words."""

from __future__ import annotations

import numpy as np

from inference.results.arrays import FitArrays
from inference.results.text import shorten

__all__ = ["majority_levels"]


def majority_levels(fit: FitArrays, members: np.ndarray, width: int, most: int = 3) -> list[str]:
    """The commonest level of each known factor among some samples, with its share: `octet 98 %`.

    Args:
        fit: The fit.
        members: Which samples, bool `[n]`.
        width: Most characters of a level.
        most: Most factors.

    Returns:
        One text per factor, in their order; `unknown` where no sample of the cell has a level.
    """
    return [_majority(fit, name, members, width) for name in list(fit.factors)[:most]]


def _majority(fit: FitArrays, name: str, members: np.ndarray, width: int) -> str:
    codes = fit.factors[name][members]
    known = codes[codes >= 0]
    if not known.size:
        return "unknown"
    counts = np.bincount(known)
    code, levels = int(counts.argmax()), fit.factor_levels.get(name, ())
    level = levels[code] if code < len(levels) else str(code)
    return f"{shorten(level, width)} {counts[code] / known.size:.0%}"
