"""Vectors as the rows of a heat map, one row per cell."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.curve_axes import value_label
from inference.results.figures.style import Space, panels
from inference.results.text import shorten

__all__ = ["draw_vectors"]

_MOST_NUMBERS = 12
_ROW = 0.2


def draw_vectors(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw vectors `[C, entry]`: up to 12 entries with their numbers, more as colours on one scale."""
    rows = values[cells.shown].reshape(len(cells.shown), -1)
    few = rows.shape[1] <= _MOST_NUMBERS
    size = (max(1.2, 0.5 * rows.shape[1]) if few else 5.0, max(0.5, _ROW * len(rows)))
    figure, (ax,) = panels(1, size=size, columns=1, space=Space(above=0.1))
    shades = _per_column(rows) if few else rows
    low, high = (0.0, 1.0) if few else _value_range(modality)
    marks = ax.imshow(np.ma.masked_invalid(shades), cmap="viridis", vmin=low, vmax=high, aspect="auto")
    _label_rows(ax, rows, cells)
    if few:
        _write_numbers(ax, rows, shades)
        unit = f" in {shorten(modality.unit, 20)}" if modality.unit else ""
        scale = f"Numbers are values{unit}; colour runs from the lowest to the highest cell of each entry."
        return figure, scale + _gap_note(rows)
    bar = figure.colorbar(marks, cax=ax.inset_axes((1.02, 0.0, 0.02, 1.0)), label=value_label(name, modality))
    bar.outline.set_visible(False)
    return figure, _gap_note(rows).strip()


def _gap_note(rows: np.ndarray) -> str:
    missing = np.isnan(rows)
    return " White: not measured." if (missing.any(axis=1) & ~missing.all(axis=1)).any() else ""


def _label_rows(ax: Axes, rows: np.ndarray, cells: Cells) -> None:
    names = [f"{cells.names[cell]}  n = {cells.counts[cell]}" for cell in cells.shown]
    ax.set_yticks(range(len(rows)), labels=names)
    if rows.shape[1] <= _MOST_NUMBERS:
        ax.set_xticks(range(rows.shape[1]))
    ax.set(xlabel="entry")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for i in map(int, np.flatnonzero(~np.isfinite(rows).any(axis=1))):
        text = cells.missing(cells.shown[i])
        ax.text((rows.shape[1] - 1) / 2, i, text, ha="center", va="center", fontsize=7, color="#777777")


def _write_numbers(ax: Axes, rows: np.ndarray, shades: np.ndarray) -> None:
    for i, j in np.argwhere(np.isfinite(rows)):
        colour = "black" if shades[i, j] > 0.6 else "white"
        ax.text(j, i, f"{rows[i, j]:.3g}", ha="center", va="center", fontsize=6, color=colour)


def _per_column(rows: np.ndarray) -> np.ndarray:
    """Each entry scaled to [0, 1] over the cells; 0.5 where all cells agree."""
    finite = np.where(np.isfinite(rows), rows, np.nan)
    low = np.min(finite, axis=0, initial=np.inf, where=np.isfinite(finite))
    high = np.max(finite, axis=0, initial=-np.inf, where=np.isfinite(finite))
    spread = high - low
    flat = ~(spread > 0)
    return np.where(flat & np.isfinite(finite), 0.5, (finite - np.where(flat, 0.0, low)) / np.where(flat, 1.0, spread))


def _value_range(modality: ModalityArrays) -> tuple[float, float]:
    for values in (modality.exemplars, modality.decoded):
        finite = values[np.isfinite(values)]
        if finite.size:
            return float(finite.min()), float(finite.max())
    return 0.0, 1.0
