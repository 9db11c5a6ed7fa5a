"""The curves of all cells on common axes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.curve_axes import (
    curve_axis,
    decoded_where_measured,
    draw_curve,
    position_label,
    scale_positions,
    scale_values,
    value_label,
    value_limits,
)
from inference.results.figures.style import ACCENT, Space, panels

__all__ = ["draw_curves"]

_MOST_OVERLAID = 8
_FEW = 16
_GAP = 0.22


def draw_curves(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw curves `[C, position]`: up to 8 in one panel, more in a panel each with the range of all behind it.

    Elements that are NaN break a line. Measured and decoded curves have the same limits, so that the two figures can
    be laid side by side.
    """
    if len(cells.shown) <= _MOST_OVERLAID:
        return _overlaid(name, modality, values, cells), ""
    return _one_panel_each(name, modality, values, cells), "Grey: the range of the curves of all cells."


def _overlaid(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> Figure:
    figure, (ax,) = panels(1, size=(4.0, 2.5), columns=1, space=Space(above=0.1))
    for cell in cells.shown:
        missing = "" if np.isfinite(values[cell]).any() else f", {cells.missing(cell)}"
        label = f"{cells.names[cell]}  n = {cells.counts[cell]}{missing}"
        draw_curve(ax, curve_axis(modality).values, values[cell], color=cells.colours[cell], label=label)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
    ax.set(xlabel=position_label(modality), ylabel=value_label(name, modality))
    _scale(ax, modality)
    return figure


def _one_panel_each(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> Figure:
    columns, size = (4, (1.4, 1.0)) if len(cells.shown) <= _FEW else (8, (0.8, 0.6))
    titles = cells.titles(size[0] + _GAP)
    space = Space(left=_GAP, below=0.34, above=0.12 + 0.12 * (1 + titles[0].count("\n")))
    figure, axes = panels(len(cells.shown), size=size, columns=columns, space=space)
    shown = np.where(np.isfinite(values), values, np.nan)[cells.shown]
    lowest, highest = np.fmin.reduce(shown), np.fmax.reduce(shown)
    for i, (ax, cell, title) in enumerate(zip(axes, cells.shown, titles, strict=True)):
        ax.fill_between(curve_axis(modality).values, lowest, highest, color="#e4e4e4", linewidth=0)
        draw_curve(ax, curve_axis(modality).values, values[cell], color=ACCENT)
        _scale(ax, modality)
        ax.set_title(title, fontsize=7, pad=2)
        if not np.isfinite(values[cell]).any():
            ax.text(0.5, 0.5, cells.missing(cell), transform=ax.transAxes, ha="center", va="center", fontsize=7)
        _label_edges(ax, name, modality, left=i % columns == 0, bottom=i + columns >= len(cells.shown))
    return figure


def _scale(ax: Axes, modality: ModalityArrays) -> None:
    scale_positions(ax, modality)
    scale_values(ax, modality, value_limits(modality, [modality.exemplars, decoded_where_measured(modality)]))


def _label_edges(ax: Axes, name: str, modality: ModalityArrays, *, left: bool, bottom: bool) -> None:
    """Numbers only along the left and the lower edge of the page: all panels have the same axes."""
    ax.tick_params(labelsize=6)
    if bottom:
        ax.set_xlabel(position_label(modality), fontsize=7, labelpad=1)
    else:
        ax.set_xticks([])
    if left:
        ax.set_ylabel(value_label(name, modality), fontsize=7)
    else:
        ax.set_yticks([])
