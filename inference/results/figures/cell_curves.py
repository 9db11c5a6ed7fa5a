"""The curves of all cells on common axes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.style import ACCENT, Space, panels

__all__ = ["draw_curves"]

_MOST_OVERLAID = 8
_FEW = 16
_GAP = 0.22


def draw_curves(modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw curves `[C, position]`: up to 8 in one panel, more in a panel each with the range of all behind it."""
    limits = _limits(modality)
    if len(cells.shown) <= _MOST_OVERLAID:
        return _overlaid(values, cells, limits), ""
    return _one_panel_each(values, cells, limits), "Grey: the range of the curves of all cells."


def _overlaid(values: np.ndarray, cells: Cells, limits: tuple[float, float]) -> Figure:
    figure, (ax,) = panels(1, size=(4.0, 2.5), columns=1, space=Space(above=0.1))
    for cell in cells.shown:
        missing = "" if np.isfinite(values[cell]).any() else f", {cells.missing(cell)}"
        label = f"{cells.names[cell]}  n = {cells.counts[cell]}{missing}"
        ax.plot(values[cell], color=cells.colours[cell], label=label)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
    ax.set(xlabel="position", ylabel="value", ylim=limits)
    return figure


def _one_panel_each(values: np.ndarray, cells: Cells, limits: tuple[float, float]) -> Figure:
    columns, size = (4, (1.4, 1.0)) if len(cells.shown) <= _FEW else (8, (0.8, 0.6))
    titles = cells.titles(size[0] + _GAP)
    space = Space(left=_GAP, below=0.34, above=0.12 + 0.12 * (1 + titles[0].count("\n")))
    figure, axes = panels(len(cells.shown), size=size, columns=columns, space=space)
    shown = np.where(np.isfinite(values), values, np.nan)[cells.shown]
    lowest, highest = np.fmin.reduce(shown), np.fmax.reduce(shown)
    for i, (ax, cell, title) in enumerate(zip(axes, cells.shown, titles, strict=True)):
        ax.fill_between(np.arange(len(lowest)), lowest, highest, color="#e4e4e4", linewidth=0)
        ax.plot(values[cell], color=ACCENT)
        ax.set(xlim=(0, max(values.shape[1] - 1, 1)), ylim=limits)
        ax.set_title(title, fontsize=7, pad=2)
        if not np.isfinite(values[cell]).any():
            ax.text(0.5, 0.5, cells.missing(cell), transform=ax.transAxes, ha="center", va="center", fontsize=7)
        _label_edges(ax, left=i % columns == 0, bottom=i + columns >= len(cells.shown))
    return figure


def _label_edges(ax: Axes, *, left: bool, bottom: bool) -> None:
    """Numbers only along the left and the lower edge of the page: all panels have the same axes."""
    ax.tick_params(labelsize=6)
    if bottom:
        ax.set_xlabel("position", fontsize=7, labelpad=1)
    else:
        ax.set_xticks([])
    if left:
        ax.set_ylabel("value", fontsize=7)
    else:
        ax.set_yticks([])


def _limits(modality: ModalityArrays) -> tuple[float, float]:
    """Common limits of measured and decoded curves, so that the two figures can be laid side by side."""
    values = np.concatenate([modality.exemplars.ravel(), modality.decoded.ravel()])
    finite = values[np.isfinite(values)]
    if not finite.size:
        return 0.0, 1.0
    margin = 0.05 * float(np.ptp(finite)) or 0.5
    return float(finite.min()) - margin, float(finite.max()) + margin
