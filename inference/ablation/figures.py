"""A figure per metric: every seed of every cell, means with intervals, and differences paired by seed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from inference.ablation.metrics import Metric
from inference.ablation.sheets import means_shown, metric_title
from inference.ablation.statistics import mean_interval, verdict
from inference.ablation.table import AblationTable, Row
from inference.results.figures.style import ACCENT, GREY, WARNING, Space, add_note, figure_style, panels, save_figure
from inference.results.files import make_folder
from inference.results.text import shorten

__all__ = ["draw_metric", "write_figures"]

_ROW = 0.4
_TICKS = 5
_WIDTH = 2.7
_NAME = 34
_CHARACTER = 0.058
# In rows: the mean lies above the middle, the seeds in a band below it, in their order.
_ABOVE = 0.16
_BAND = (0.06, 0.32)


def write_figures(table: AblationTable, folder: Path) -> list[tuple[Metric, Path]]:
    """Write a PNG per metric; returns them with their files.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    make_folder(folder)
    written = []
    with figure_style():
        for metric in table.metrics:
            file = folder / f"{re.sub(r'[^0-9A-Za-z]+', '_', metric.name).strip('_')}.png"
            written.append((metric, save_figure(draw_metric(table, metric), file)))
    return written


def draw_metric(table: AblationTable, metric: Metric) -> Figure:
    """The metric of every cell, from top to bottom as in the table, and the differences from the baseline beside it."""
    names = [_lines(row) for row in table.rows]
    left = 0.25 + _CHARACTER * max(len(line) for name in names for line in name.split("\n"))
    size = (_WIDTH, _ROW * len(table.rows) + 0.2)
    compared = len(table.rows) > 1
    figure, axes = panels(1 + compared, size=size, columns=2, space=Space(left=left if not compared else left / 2))
    return _drawn(figure, axes, table, metric, names)


def _drawn(figure: Figure, axes: Sequence[Axes], table: AblationTable, metric: Metric, names: Sequence[str]) -> Figure:
    _rows(axes[0], [row.values[metric.name] for row in table.rows])
    axes[0].set_yticks(range(len(names)), labels=names)
    axes[0].set_title(metric_title(metric))
    if len(axes) > 1:
        _differences(axes[1], table, metric)
    add_note(figure, *_note(table, metric))
    return figure


def _lines(row: Row) -> str:
    """The name of a cell with its settings below each other, and how many fits are ok if not all."""
    words = [shorten(word, _NAME) for word in row.cell.split(",")]
    n_ok = row.statuses.get("ok", 0)
    return "\n".join([*words, *([f"({n_ok} of {row.n_fits} ok)"] if n_ok < row.n_fits else [])])


def _rows(ax: Axes, values: Sequence[Mapping[int, float]], colours: Sequence[str] | None = None) -> None:
    for y, by_seed in enumerate(values):
        numbers = np.array(list(by_seed.values()))
        if len(numbers):
            _row(ax, y, numbers, ACCENT if colours is None else colours[y])
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(_TICKS))
    ax.grid(axis="x", color="#eeeeee", linewidth=0.6)


def _row(ax: Axes, y: int, numbers: np.ndarray, colour: str) -> None:
    heights = y + np.linspace(*_BAND, len(numbers)) if len(numbers) > 1 else np.array([y + _BAND[0]])
    ax.plot(numbers, heights, "o", markersize=3, markerfacecolor="none", markeredgecolor=GREY, markeredgewidth=0.6)
    lower, upper = mean_interval(numbers)
    if lower is not None and upper is not None:
        ax.plot([lower, upper], [y - _ABOVE, y - _ABOVE], color=colour, linewidth=1.6, solid_capstyle="butt")
    ax.plot([numbers.mean()], [y - _ABOVE], "o", markersize=5, color=colour)


def _differences(ax: Axes, table: AblationTable, metric: Metric) -> None:
    paired = [row.paired.get(metric.name, {}) for row in table.rows]
    ax.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    _rows(ax, paired, [_colour(row, metric) for row in table.rows])
    ax.set_yticks([])
    ax.set_title("difference from the baseline")
    for y, row in enumerate(table.rows):
        if row.cell == table.baseline:
            _write(ax, y, "baseline")
        elif row.values.get(metric.name) and not paired[y]:
            _write(ax, y, "not compared")


def _write(ax: Axes, y: int, words: str) -> None:
    text = ax.text(0.03, y, words, transform=ax.get_yaxis_transform(), va="center", color=GREY, fontsize=7)
    text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})


def _colour(row: Row, metric: Metric) -> str:
    """That of a warning where the cell is worse than the baseline."""
    found = row.differences.get(metric.name)
    return WARNING if found is not None and verdict(found, metric.better) == "worse" else ACCENT


def _note(table: AblationTable, metric: Metric) -> list[str]:
    numbers = [by_name.get(metric.name, {}) for row in table.rows for by_name in (row.values, row.paired)]
    found = [f"Rings: one per seed. Dots: {means_shown(numbers)}."]
    is_orange = any(_colour(row, metric) == WARNING for row in table.rows)
    return [*found, "Orange: the interval lies on the worse side of zero."] if is_orange else found
