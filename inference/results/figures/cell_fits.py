"""Measured curves of each cell with the curve that the model gives it: a small panel per cell."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from inference.results.arrays import CurveArrays, FitArrays, ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.curve_axes import (
    curve_axis,
    draw_curve,
    measured_somewhere,
    position_label,
    scale_positions,
    scale_values,
    value_label,
    value_limits,
)
from inference.results.figures.majority import majority_levels
from inference.results.figures.style import GREY, Space, add_heading, add_note, panels
from inference.results.text import shorten

__all__ = ["draw_cell_fits"]

_MOST_PANELS = 16
_SIZE = (1.65, 1.25)
_GAP = 0.24
_LEVEL_WIDTH = 22
_MEASURED = "#9a9a9a"


def draw_cell_fits(fit: FitArrays, name: str, cells: Cells) -> Figure | None:
    """A panel per cell, all on the same axes; None for a modality that is no curve.

    Drawn are measured curves, the law of the cell with the 95 % interval of its parameters (else the decoded mean),
    and two standard deviations of single curves about it.

    Args:
        fit: The fit.
        name: The modality.
        cells: Names and sizes of the cells.
    """
    modality = fit.modalities[name]
    if modality.curves is None:
        return None
    shown = _shown(cells)
    titles = _titles(fit, cells, shown)
    columns = _columns(len(shown))
    space = Space(left=_GAP, below=0.34, above=0.08 + 0.12 * (titles[0].count("\n") + 1))
    figure, axes = panels(len(shown), size=_SIZE, columns=columns, space=space)
    limits = _limits(modality, modality.curves, shown)
    for i, (ax, cell, title) in enumerate(zip(axes, shown, titles, strict=True)):
        _draw_cell(ax, modality, modality.curves, cells, int(cell))
        scale_positions(ax, modality)
        scale_values(ax, modality, limits)
        ax.set_title(title, fontsize=7, pad=2)
        _label(ax, name, modality, left=i % columns == 0, bottom=i + columns >= len(shown))
    _add_legend(axes[min(columns, len(shown)) - 1], modality)
    what = "the fitted law of each cell" if modality.physics else "the decoded mean of each cell"
    add_heading(figure, f"{shorten(name, 40)}: measured curves and {what}\ncells by {cells.nodes}")
    add_note(figure, *_notes(fit, name, cells, shown))
    return figure


def _shown(cells: Cells) -> np.ndarray:
    """The fullest 16 of the cells that have samples, in order; of an empty fit the first."""
    fullest = np.argsort(-cells.counts, kind="stable")[:_MOST_PANELS]
    filled = fullest[cells.counts[fullest] > 0]
    return np.sort(filled) if len(filled) else fullest[:1]


def _columns(count: int) -> int:
    return count if count <= 3 else 2 if count == 4 else 3 if count <= 6 else 4


def _titles(fit: FitArrays, cells: Cells, shown: np.ndarray) -> list[str]:
    """Name and size of a cell, and what its samples mostly are."""
    known = [majority_levels(fit, cells.assignment == cell, _LEVEL_WIDTH) for cell in shown]
    return [
        "\n".join([f"{shorten(cells.names[cell], 24)}  n = {cells.counts[cell]}", *levels])
        for cell, levels in zip(shown, known, strict=True)
    ]


def _middle(modality: ModalityArrays) -> np.ndarray:
    return modality.decoded if modality.physics is None else modality.physics.curve


def _limits(modality: ModalityArrays, curves: CurveArrays, shown: np.ndarray) -> tuple[float, float]:
    middle = np.where(measured_somewhere(curves), _middle(modality), np.nan)
    if np.isfinite(middle[shown]).any():
        return value_limits(modality, [curves.examples[shown], middle[shown]])
    return value_limits(modality, [_middle(modality)[shown]])


def _draw_cell(ax: Axes, modality: ModalityArrays, curves: CurveArrays, cells: Cells, cell: int) -> None:
    positions, colour = curve_axis(modality).values, cells.colours[cell]
    measured = measured_somewhere(curves)[cell]
    _draw_band(ax, positions, curves.lower, curves.upper, cell, measured, color=colour, alpha=0.16)
    for values in _measured(modality, curves.examples[cell]):
        draw_curve(ax, positions, values, color=_MEASURED, linewidth=0.4, alpha=0.7)
    if modality.physics is not None:
        lower, upper = modality.physics.curve_lower, modality.physics.curve_upper
        _draw_band(ax, positions, lower, upper, cell, measured, color=colour, alpha=0.45, zorder=3)
        ax.plot(positions, modality.physics.curve[cell], color=colour, linewidth=0.9, linestyle=":", zorder=3)
    middle = _middle(modality)[cell]
    draw_curve(ax, positions, np.where(measured, middle, np.nan), color=colour, linewidth=1.3, zorder=4)
    if not measured.any():
        ax.text(0.5, 0.9, cells.missing(cell), transform=ax.transAxes, ha="center", va="top", fontsize=7)


def _measured(modality: ModalityArrays, examples: np.ndarray) -> np.ndarray:
    """The curves themselves; of curves of zeros and ones their mean, since lines through them hide each other."""
    there = np.isfinite(examples)
    if modality.likelihood != "bernoulli":
        return examples[there.any(axis=1)]
    count = there.sum(axis=0)
    return np.where(count > 0, np.where(there, examples, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)[None]


def _draw_band(
    ax: Axes,
    positions: np.ndarray,
    lower: np.ndarray | None,
    upper: np.ndarray | None,
    cell: int,
    measured: np.ndarray,
    **style: Any,
) -> None:
    if lower is not None and upper is not None:
        ax.fill_between(positions, lower[cell], upper[cell], where=measured, linewidth=0, **style)


def _label(ax: Axes, name: str, modality: ModalityArrays, *, left: bool, bottom: bool) -> None:
    """Numbers and names along the left and the lower edge of the page: all panels have the same axes."""
    ax.tick_params(labelsize=6, labelleft=left, labelbottom=bottom)
    if bottom:
        ax.set_xlabel(position_label(modality), fontsize=7, labelpad=1)
    if left:
        ax.set_ylabel(value_label(name, modality), fontsize=7)


def _add_legend(ax: Axes, modality: ModalityArrays) -> None:
    measured = "mean of measured" if modality.likelihood == "bernoulli" else "measured"
    entries: dict[str, Artist] = {measured: Line2D([], [], color=_MEASURED, linewidth=0.6)}
    entries["decoded mean" if modality.physics is None else "law"] = Line2D([], [], color=GREY, linewidth=1.3)
    if modality.physics is not None:
        entries["95 % interval of the law"] = Patch(color=GREY, alpha=0.6, linewidth=0)
    if modality.curves is not None and modality.curves.lower is not None:
        entries[_band_name(modality)] = Patch(color=GREY, alpha=0.2, linewidth=0)
    ax.legend(list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(1.05, 1.0))


def _band_name(modality: ModalityArrays) -> str:
    """What the wide band is; where one variance serves a whole modality, its width follows no position."""
    has_one = modality.noise_sd is not None and np.ptp(modality.noise_sd) == 0
    return "± 2 sd (one noise sd for all positions)" if has_one else "± 2 sd of single curves"


def _notes(fit: FitArrays, name: str, cells: Cells, shown: np.ndarray) -> list[str]:
    modality, present = fit.modalities[name], fit.present[name]
    curves = modality.curves
    assert curves is not None
    n_cells, most = int((cells.counts > 0).sum()), curves.examples.shape[1]
    has_more = any((present & (cells.assignment == cell)).sum() > most for cell in shown)
    has_gaps = not measured_somewhere(curves)[shown].all()
    notes = {
        f"The {len(shown)} fullest of {n_cells} cells with samples are shown.": len(shown) < n_cells,
        f"Of each cell at most {most} measured curves are shown, chosen at random.": has_more,
        "Dotted: no drawn curve of the cell was measured there.": has_gaps and modality.physics is not None,
        "Decoded means end where no drawn curve of the cell was measured.": has_gaps and modality.physics is None,
        "Below the name of a cell: the commonest level of each known factor and its share.": bool(fit.factors),
    }
    return [note for note, holds in notes.items() if holds]
