"""A table of shares as a heat map with its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from inference.results.figures.style import WARNING
from inference.results.text import shorten

__all__ = ["CELL", "NAME_WIDTH", "draw_heat_map", "label_space", "outline"]

CELL = (0.62, 0.3)
"""Inches of one entry."""

NAME_WIDTH = 16
"""Most characters of a name."""

_CHARACTER = 0.058
_DARK = 0.6


def draw_heat_map(
    ax: Axes, table: np.ndarray, rows: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]
) -> None:
    """Shares in [0, 1] from white to dark blue; NaN stays white.

    Args:
        ax: Where.
        table: `[row, column]`.
        rows: Names of the rows, as they are to stand there.
        columns: Names of the columns; upright where they would run into each other.
        texts: What is written into each entry.
    """
    ax.imshow(np.ma.masked_invalid(table), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for i, j in np.ndindex(*table.shape):
        colour = "white" if table[i, j] > _DARK else "black"
        ax.text(j, i, texts[i][j], ha="center", va="center", fontsize=7, color=colour)
    names = [shorten(name, NAME_WIDTH) for name in columns]
    upright = max(map(len, names)) * _CHARACTER > CELL[0]
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(names)), labels=names, rotation=90 if upright else 0)
    ax.set_yticks(range(len(rows)), labels=list(rows))
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)


def label_space(columns: Sequence[str]) -> float:
    """Inches that the names of the columns need above the table."""
    longest = min(NAME_WIDTH, max(map(len, columns))) * _CHARACTER
    return 0.2 + (longest if longest > CELL[0] else 0.1)


def outline(ax: Axes, row: int, column: int) -> None:
    """A frame around one entry."""
    ax.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fill=False, edgecolor=WARNING, linewidth=1.4))
