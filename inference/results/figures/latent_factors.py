"""Latent space coloured by what is known about the samples: one panel per factor and measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from inference.results.arrays import FitArrays
from inference.results.figures.projection import LatentView
from inference.results.figures.style import FAINT, Space, add_note, colour_legend, level_colours, panels
from inference.results.text import printable, shorten

__all__ = ["draw_latent_factors"]

_PANEL = (2.1, 1.9)
_MOST_LEGEND_LEVELS = 12
_LEVEL_WIDTH = 20
_BELOW = -0.42 / _PANEL[1]


def draw_latent_factors(fit: FitArrays, view: LatentView) -> Figure | None:
    """One panel per known factor, then one per measurement; None where nothing is known."""
    n_panels = len(fit.factors) + len(fit.measurements)
    if not n_panels:
        return None
    levels = {name: _levels(fit, name) for name in fit.factors}
    rows = max((_legend_rows(names) for names in levels.values()), default=1)
    figure, axes = panels(n_panels, size=_PANEL, columns=3, space=Space(below=0.55 + 0.16 * rows))
    for ax, name in zip(axes, fit.factors, strict=False):
        _draw_factor(ax, view, fit.factors[name][view.rows], levels[name])
        ax.set_title(shorten(name, 34))
    for ax, name in zip(axes[len(fit.factors) :], fit.measurements, strict=True):
        _draw_measurement(ax, view, fit.measurements[name][view.rows], name)
        ax.set_title(f"{shorten(name, 24)} (measured)")
    _label_axes(axes, view)
    add_note(figure, view.note)
    return figure


def _levels(fit: FitArrays, name: str) -> list[str]:
    known = list(fit.factor_levels.get(name, ()))
    n_codes = int(fit.factors[name].max(initial=-1)) + 1
    return known + [str(code) for code in range(len(known), n_codes)]


def _draw_factor(ax: Axes, view: LatentView, codes: np.ndarray, levels: Sequence[str]) -> None:
    colours = level_colours(levels)
    known = codes >= 0
    if view.points.shape[1] == 1:
        _histograms(ax, [view.points[codes == code, 0] for code in range(len(levels))], colours)
    else:
        _scatter(ax, view, ~known, FAINT)
        _scatter(ax, view, known, colours[codes[known]])
    if len(levels) <= _MOST_LEGEND_LEVELS:
        _legend(ax, levels, colours, has_unknown=not known.all())
    else:
        _level_bar(ax, levels, colours)


def _histograms(ax: Axes, groups: Sequence[np.ndarray], colours: np.ndarray) -> None:
    edges = np.histogram_bin_edges(np.concatenate(groups), bins=40).tolist()
    for values, colour in zip(groups, colours, strict=True):
        ax.hist(values, bins=edges, histtype="stepfilled", color=colour, alpha=0.45)
        ax.hist(values, bins=edges, histtype="step", color=colour)
    ax.set_ylabel("samples")


def _scatter(ax: Axes, view: LatentView, chosen: np.ndarray, colour: np.ndarray | str) -> None:
    x, y = view.points[chosen].T
    ax.scatter(x, y, s=view.marker_size, c=colour, linewidths=0, alpha=0.7, rasterized=True)


def _legend(ax: Axes, levels: Sequence[str], colours: np.ndarray, *, has_unknown: bool) -> None:
    names = [shorten(level, _LEVEL_WIDTH) for level in levels] + ["unknown"] * has_unknown
    place = {"loc": "upper left", "bbox_to_anchor": (0, _BELOW), "ncol": _legend_columns(names)}
    colour_legend(ax, names, [*colours, FAINT][: len(names)], **place)


def _legend_columns(names: Sequence[str]) -> int:
    widest = max(len(shorten(name, _LEVEL_WIDTH)) for name in names)
    return max(1, min(len(names), int(_PANEL[0] / (0.3 + 0.062 * widest))))


def _legend_rows(names: Sequence[str]) -> int:
    return 1 if len(names) > _MOST_LEGEND_LEVELS else math.ceil((len(names) + 1) / _legend_columns([*names, "unknown"]))


def _level_bar(ax: Axes, levels: Sequence[str], colours: np.ndarray) -> None:
    """A bar instead of a legend, with at most four of the levels named."""
    norm = BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels))
    bar = _colour_bar(ax, matplotlib.cm.ScalarMappable(norm, ListedColormap(colours)))
    ticks = np.linspace(0, len(levels) - 1, 4).round().astype(int)
    bar.set_ticks(list(ticks), labels=[shorten(levels[i], 8) for i in ticks], minor=False)
    bar.minorticks_off()


def _draw_measurement(ax: Axes, view: LatentView, values: np.ndarray, name: str) -> None:
    known = np.isfinite(values)
    if view.points.shape[1] == 1:
        ax.scatter(view.points[known, 0], values[known], s=view.marker_size, linewidths=0, alpha=0.6, rasterized=True)
        ax.set_ylabel(shorten(name, 24))
        return
    _scatter(ax, view, ~known, FAINT)
    x, y = view.points[known].T
    marks = ax.scatter(
        x, y, s=view.marker_size, c=values[known], cmap="viridis", linewidths=0, alpha=0.7, rasterized=True
    )
    _colour_bar(ax, marks).set_label(printable(name))


def _colour_bar(ax: Axes, marks: matplotlib.cm.ScalarMappable) -> Colorbar:
    opaque = matplotlib.cm.ScalarMappable(marks.norm, marks.cmap)
    bar = ax.figure.colorbar(opaque, cax=ax.inset_axes((0.0, _BELOW - 0.06, 1.0, 0.05)), orientation="horizontal")
    bar.outline.set_visible(False)
    return bar


def _label_axes(axes: Sequence[Axes], view: LatentView) -> None:
    for ax in axes:
        ax.set_xlabel(view.labels[0], labelpad=2)
        if len(view.labels) == 2:
            ax.set_ylabel(view.labels[1])
