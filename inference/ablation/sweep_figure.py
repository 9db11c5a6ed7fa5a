"""A panel per searched setting: how good every trial was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from inference.ablation.metrics import Metric
from inference.ablation.ranges import Range
from inference.ablation.sheets import metric_title, number_of_seeds
from inference.ablation.table import AblationTable, Row
from inference.results.figures.style import ACCENT, GREY, Space, add_note, figure_style, panels, save_figure
from inference.results.text import printable, shorten

__all__ = ["draw_sweep", "write_sweep_figure"]

_SIZE = (2.3, 1.7)
_COLUMNS = 3
_NAME = 34
_WIDE = 100
_MARGIN = 0.05


def write_sweep_figure(table: AblationTable, ranges: Sequence[Range], metric: Metric, path: Path) -> Path:
    """Write the figure as PNG.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    with figure_style():
        return save_figure(draw_sweep(table, ranges, metric), path)


def draw_sweep(table: AblationTable, ranges: Sequence[Range], metric: Metric) -> Figure:
    """The mean of the metric over the seeds of every trial, over the value of each setting.

    Args:
        table: The default and all trials.
        ranges: What was searched.
        metric: What was to be good.
    """
    figure, axes = panels(len(ranges), size=_SIZE, columns=_COLUMNS, space=Space(left=0.7, below=0.65, above=0.3))
    for ax, searched in zip(axes, ranges, strict=True):
        _panel(ax, table, searched, metric)
    axes[0].set_ylabel(metric_title(metric))
    default = " Dotted: the default." if _mean(_default(table), metric) is not None else ""
    add_note(figure, f"A dot per trial: its mean over {number_of_seeds(table)}. Blue: the best trial.{default}")
    return figure


def _panel(ax: Axes, table: AblationTable, searched: Range, metric: Metric) -> None:
    found = [(row.flags[searched.flag], _mean(row, metric)) for row in table.rows if searched.flag in row.flags]
    points = [(_place(searched, text), mean) for text, mean in found if mean is not None]
    if points:
        x, y = np.array(points).T
        best = int(np.argmax(metric.better * y))
        ax.plot(x, y, "o", markersize=4, color=GREY, markerfacecolor="none")
        ax.plot(x[best], y[best], "o", markersize=5, color=ACCENT)
    default = _mean(_default(table), metric)
    if default is not None:
        ax.axhline(default, color=GREY, linewidth=0.8, linestyle=":")
    _scale(ax, searched)


def _scale(ax: Axes, searched: Range) -> None:
    ax.set_xlabel(shorten(searched.flag, _NAME))
    if searched.choices:
        ax.set_xticks(range(len(searched.choices)), labels=[printable(choice) for choice in searched.choices])
        ax.set_xlim(-0.5, len(searched.choices) - 0.5)
        return
    if searched.is_log:
        ax.set_xscale("log")
        is_wide = searched.high >= _WIDE * searched.low
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    elif searched.is_whole:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set_xlim(*_margins(searched))


def _margins(searched: Range) -> tuple[float, float]:
    """The range, and a twentieth of it on both sides."""
    if searched.is_log:
        factor = (searched.high / searched.low) ** _MARGIN
        return searched.low / factor, searched.high * factor
    rest = _MARGIN * (searched.high - searched.low)
    return searched.low - rest, searched.high + rest


def _place(searched: Range, text: str) -> float:
    return float(searched.choices.index(text)) if searched.choices else float(text)


def _default(table: AblationTable) -> Row | None:
    return next((row for row in table.rows if row.cell == table.baseline), None)


def _mean(row: Row | None, metric: Metric) -> float | None:
    found = None if row is None else row.spreads.get(metric.name)
    return None if found is None else found.mean
