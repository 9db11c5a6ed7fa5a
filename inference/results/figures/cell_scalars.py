"""One number per cell as dots along an axis, one row per cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.curve_axes import scale_values, value_label, value_limits
from inference.results.figures.style import GREY, Space, panels

__all__ = ["draw_scalars"]

_WIDTH = 3.2
_ROW = 0.2


def draw_scalars(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw one value per cell `[C, 1]` as dots; where they are decoded, the nearest measured samples as open circles.

    Measured and decoded values have the same limits, so that the two figures can be laid side by side.
    """
    rows, measured = _shown(values, cells), _shown(modality.exemplars, cells)
    figure, (ax,) = panels(1, size=(_WIDTH, max(0.5, _ROW * len(rows))), columns=1, space=Space(above=0.1))
    scale_values(ax, modality, value_limits(modality, [modality.exemplars, modality.decoded]), side="x")
    _label_rows(ax, rows, cells)
    ax.set_xlabel(value_label(name, modality))
    places = np.arange(len(rows))
    ax.scatter(rows, places, s=22, color=cells.colours[cells.shown], linewidth=0, zorder=3)
    if np.array_equal(rows, measured, equal_nan=True):
        return figure, ""
    ax.scatter(measured, places, s=34, facecolor="none", edgecolor=GREY, linewidth=0.8, zorder=2)
    return figure, "Open circles: the measured sample nearest to the mean of each cell."


def _shown(values: np.ndarray, cells: Cells) -> np.ndarray:
    """Value of each shown cell; NaN where there is none."""
    rows = values[cells.shown].reshape(len(cells.shown)).astype(float)
    return np.where(np.isfinite(rows), rows, np.nan)


def _label_rows(ax: Axes, rows: np.ndarray, cells: Cells) -> None:
    """Names and sizes of the cells from the top down, with why a cell has no dot."""
    names = [f"{cells.names[cell]}  n = {cells.counts[cell]}" for cell in cells.shown]
    ax.set_yticks(range(len(rows)), labels=names)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    ax.tick_params(axis="y", length=0)
    middle: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "center", "va": "center"}
    for i in map(int, np.flatnonzero(np.isnan(rows))):
        ax.text(0.5, i, cells.missing(cells.shown[i]), fontsize=7, color="#777777", **middle)
