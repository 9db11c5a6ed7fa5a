"""Everything that an ablation leaves beside its runs: records, tables in every form, figures, and what it prints."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from causalpima.inference.ablation.records import Metric, Record, write_records
from causalpima.inference.ablation.sheets import (
    digits_of,
    failure_lines,
    failures_of,
    latex,
    markdown,
    markdown_text,
    means_shown,
    metric_title,
    notes,
    number_of_seeds,
    parts_of,
    plain,
    settings_sheet,
    sheets_of,
    signed,
    with_minus,
)
from causalpima.inference.ablation.sweep import Range
from causalpima.inference.ablation.table import AblationTable, Row, csv_text, mean_interval, verdict, why_apart
from causalpima.inference.findings.base import Part, Picture, Section, Table
from causalpima.inference.findings.drawing import (
    ACCENT,
    GREY,
    WARNING,
    Space,
    add_note,
    figure_style,
    panels,
    save_figure,
)
from causalpima.inference.reporting.page import page_html
from causalpima.inference.reporting.page_tables import picture_of
from causalpima.inference.store.files import make_folder, write_json, write_text
from causalpima.inference.store.text import printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ablation_page",
    "best_sentence",
    "best_words",
    "draw_metric",
    "draw_sweep",
    "findings",
    "is_better",
    "status_line",
    "terminal_text",
    "write_figures",
    "write_results",
    "write_sweep_figure",
]


# The page of an ablation: one HTML file that needs no other, in the form of the report of a run.


_MOST_FINDINGS = 8
# Characters beside each other on the page, on paper, too; figures larger than in print, since type is small there.
_PAGE_WIDTH = 96
_SCALE = 1.35


def ablation_page(
    table: AblationTable,
    records: Sequence[Record],
    figures: Sequence[tuple[Metric, Path]],
    command: str,
    trials: Path | None = None,
    origin: Sequence[str] = (),
    best: str | None = None,
) -> str:
    """The page as HTML.

    Args:
        table: The table.
        records: All fits.
        figures: A picture per metric.
        command: How it was made.
        trials: Picture of a sweep's trials, or None.
        origin: Short facts on the data.
        best: What a sweep found, or None.
    """
    statuses = [record.status for record in records]
    facts = [*origin, f"{len(table.rows)} cells", number_of_seeds(table), f"baseline {printable(table.baseline)}"]
    return page_html(
        "Ablation",
        "clear" if all(status == "ok" for status in statuses) else "doubtful" if "ok" in statuses else "failed",
        f"Status: {status_line(records)}",
        [*([best] if best else []), *findings(table)] or ["No metric that is better one way was compared."],
        facts,
        [section for section in _sections(table, records, figures, command, trials) if section.is_filled],
    )


def status_line(records: Sequence[Record]) -> str:
    """How many fits are ok, and how the others ended."""
    statuses = [record.status for record in records]
    others = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses) if status != "ok"]
    return "; ".join([f"{statuses.count('ok')} of {len(statuses)} fits are ok", *others])


def findings(table: AblationTable) -> list[str]:
    """One sentence per cell: the first metric that is better one way, and the names of others that differ."""
    metric = next((m for m in table.metrics if m.better), None)
    if metric is None:
        return []
    rows = [row for row in table.rows if metric.name in row.differences]
    told = [_sentence(row, metric, table) + _others(row, metric, table) for row in rows]
    more = [f"{len(told) - _MOST_FINDINGS} more cells are in the tables below."] if len(told) > _MOST_FINDINGS else []
    return told[:_MOST_FINDINGS] + more


def _others(row: Row, first: Metric, table: AblationTable) -> str:
    """Further metrics of which an interval leaves zero out."""
    told = {"better": list[str](), "worse": list[str]()}
    for metric in table.metrics:
        found = verdict(row.differences[metric.name], metric.better) if metric is not first and metric.better else ""
        if found in told:
            told[found].append(metric.label)
    words = [f"{word} in {printable(', '.join(labels))}" for word, labels in told.items() if labels]
    return f" Also {'; '.join(words)}." if words else ""


def _sentence(row: Row, metric: Metric, table: AblationTable) -> str:
    cell, found, baseline = row.cell, row.differences[metric.name], table.baseline
    if found.mean is None:
        return printable(f"{cell}: no {metric.label} to compare ({_why_none(row, metric, table)}).")
    digits = digits_of(found, metric)
    number = signed(found.mean, digits)
    if found.lower is None or found.upper is None:
        return printable(
            f"{cell}: {metric.label} {number} against {baseline}, on {_seeds(found.n)}: too few seeds to tell."
        )
    interval = f"{signed(found.lower, digits)} to {signed(found.upper, digits)}, {found.n} seeds"
    return printable(
        f"{cell}: {metric.label} {number} ({interval}) against {baseline}: {verdict(found, metric.better)}."
    )


def _why_none(row: Row, metric: Metric, table: AblationTable) -> str:
    """Why there is no difference from the baseline."""
    baseline = next((other for other in table.rows if other.cell == table.baseline), None)
    if baseline is None or not baseline.values[metric.name]:
        return f"{table.baseline} has none"
    if row.values[metric.name]:
        return why_apart(row, baseline, metric) or f"no seed that {table.baseline} has, too"
    failed = failures_of(row)
    return f"{failed} of {row.n_fits} fits" if failed else "no fit has it"


def _sections(
    table: AblationTable,
    records: Sequence[Record],
    figures: Sequence[tuple[Metric, Path]],
    command: str,
    trials: Path | None,
) -> list[Section]:
    swept = [] if trials is None else [picture_of(trials, "", "", "The metric of every trial over each setting")]
    sheets = [part for sheet in sheets_of(table) for part in parts_of(sheet, _PAGE_WIDTH)]
    return [
        Section("table", "Table", notes(table), sheets),
        Section("failures", "Fits that are not ok", failure_lines(records)),
        Section("trials", "Trials", pictures=swept),
        Section(
            "figures", "Figures", [_caption(table)] if figures else [], parts=[_part(m, path) for m, path in figures]
        ),
        Section("cells", "Cells", tables=settings_sheet(table)),
        Section("fits", "All fits", tables=parts_of(_fits(table, records), _PAGE_WIDTH, 2)),
        Section("command", "How it was made", texts=[("Command", command)]),
    ]


def _caption(table: AblationTable) -> str:
    """What the pictures show, intervals where there are some."""
    numbers = [found for row in table.rows for by_name in (row.values, row.paired) for found in by_name.values()]
    return f"Left: a ring per seed, {means_shown(numbers)}. Right: the same of differences from the baseline, by seed."


def _part(metric: Metric, path: Path) -> Part:
    return Part(metric_title(metric), pictures=[_picture(metric, path)])


def _picture(metric: Metric, path: Path) -> Picture:
    found = picture_of(path, "", "", f"{metric.label} of every cell, and its differences from the baseline")
    return found._replace(width=round(_SCALE * found.width))


def _fits(table: AblationTable, records: Sequence[Record]) -> Table:
    head = ["cell", "seed", "status", "folder", *map(metric_title, table.metrics)]
    return Table("", head, [_fit(record, table.metrics) for record in records])


def _fit(record: Record, metrics: Sequence[Metric]) -> list[str]:
    numbers = [_number(record.metrics.get(m.name), m.digits) for m in metrics]
    return [printable(record.cell), str(record.seed), record.status, printable(record.run) or "-", *numbers]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else with_minus(value, digits)


def _seeds(n: int) -> str:
    return f"{n} seed{'' if n == 1 else 's'}"


# A figure per metric: every seed of every cell, means with intervals, and differences paired by seed.


_ROW = 0.4
_TICKS = 5
_PANEL_WIDTH = 2.7
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
    size = (_PANEL_WIDTH, _ROW * len(table.rows) + 0.2)
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
    from matplotlib.ticker import MaxNLocator

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


# A panel per searched setting: how good every trial was.


_SIZE = (2.3, 1.7)
_COLUMNS = 3
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
    default = " Dotted: the default." if _mean_of_row(_default(table), metric) is not None else ""
    add_note(figure, f"A dot per trial: its mean over {number_of_seeds(table)}. Blue: the best trial.{default}")
    return figure


def _panel(ax: Axes, table: AblationTable, searched: Range, metric: Metric) -> None:
    found = [(row.flags[searched.flag], _mean_of_row(row, metric)) for row in table.rows if searched.flag in row.flags]
    points = [(_place(searched, text), mean) for text, mean in found if mean is not None]
    if points:
        x, y = np.array(points).T
        best = int(np.argmax(metric.better * y))
        ax.plot(x, y, "o", markersize=4, color=GREY, markerfacecolor="none")
        ax.plot(x[best], y[best], "o", markersize=5, color=ACCENT)
    default = _mean_of_row(_default(table), metric)
    if default is not None:
        ax.axhline(default, color=GREY, linewidth=0.8, linestyle=":")
    _scale(ax, searched)


def _scale(ax: Axes, searched: Range) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

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


def _mean_of_row(row: Row | None, metric: Metric) -> float | None:
    found = None if row is None else row.spreads.get(metric.name)
    return None if found is None else found.mean


# What a sweep found: its best trial beside the default, which may be better than every trial.


def is_better(value: float, default: float | None, metric: Metric) -> bool | None:
    """Whether the best trial is better than the default; None where the default has no number."""
    return None if default is None else metric.better * value > metric.better * default


def best_words(name: str, value: float, default: float | None, metric: Metric) -> str:
    """The best trial and the default with their numbers.

    Args:
        name: Name of the best trial.
        value: Its value.
        default: The value of the default; None: a fit of it has none.
        metric: What was to be good.
    """
    best = with_minus(value, metric.digits)
    if default is None:
        return printable(f"{name}, {metric.name} {best}; the default has no number")
    usual = with_minus(default, metric.digits)
    if is_better(value, default, metric):
        return printable(f"{name}, {metric.name} {best}, the default {usual}")
    return printable(
        f"no trial is better than the default ({usual}): {name}, {metric.name} {best}, is the best of them"
    )


def best_sentence(table: AblationTable, metric: Metric) -> str | None:
    """The same for the page; None where no trial has a number of every seed.

    Args:
        table: The default, which is the baseline, and all trials.
        metric: What was to be good.
    """
    means = {row.cell: mean for row in table.rows if (mean := _mean_of_trial(row, metric)) is not None}
    default = means.pop(table.baseline, None)
    if not means:
        return None
    name = max(means, key=lambda cell: metric.better * means[cell])
    words = best_words(name, means[name], default, metric)
    return f"Sweep: {words}." if words.startswith("no trial") else f"Sweep: the best trial is {words}."


def _mean_of_trial(row: Row, metric: Metric) -> float | None:
    """The mean over all seeds, which is the value of a trial."""
    found = row.spreads.get(metric.name)
    return None if found is None or len(row.values[metric.name]) < row.n_fits else found.mean


Swept = tuple[Sequence[Range], Metric]

_TERMINAL_WIDTH = 100
_MOST_OF_A_REASON = 160


def write_results(
    folder: Path,
    table: AblationTable,
    records: Sequence[Record],
    command: str,
    swept: Swept | None = None,
    origin: Sequence[str] = (),
) -> None:
    """Write `records.jsonl`, `table.csv`, `.json`, `.md`, `.tex`, `.html` and `figures`.

    Args:
        folder: Folder of the ablation.
        table: The table.
        records: All fits.
        command: How it was made.
        swept: What was searched, and what was to be good; None: no sweep.
        origin: Short facts on the data.

    Raises:
        OutputError: The disk is full, or the folder cannot be written to.
    """
    write_records(folder / "records.jsonl", records)
    write_text(folder / "table.csv", csv_text(table))
    write_json(folder / "table.json", table.to_dict())
    write_text(folder / "table.md", _markdown(table, records))
    write_text(folder / "table.tex", _latex(table, records, command, origin))
    figures = write_figures(table, folder / "figures")
    trials = None if swept is None else write_sweep_figure(table, *swept, folder / "figures" / "sweep.png")
    best = None if swept is None else best_sentence(table, swept[1])
    write_text(folder / "table.html", ablation_page(table, records, figures, command, trials, origin, best))


def terminal_text(table: AblationTable, records: Sequence[Record]) -> str:
    """The same for people at a terminal."""
    sheets = [*sheets_of(table), *settings_sheet(table)]
    parts = [status_line(records), *map(plain, sheets), *_paragraphs(table, records)]
    return "\n\n".join(parts)


def _paragraphs(table: AblationTable, records: Sequence[Record]) -> list[str]:
    parts = (failure_lines(records), notes(table))
    return [
        "\n".join(textwrap.fill(line, _TERMINAL_WIDTH, subsequent_indent="  ") for line in lines)
        for lines in parts
        if lines
    ]


def _markdown(table: AblationTable, records: Sequence[Record]) -> str:
    failures = "\n".join(f"- {markdown_text(line)}" for line in failure_lines(records))
    told = map(markdown_text, notes(table))
    return "\n\n".join([*map(markdown, sheets_of(table)), *([failures] if failures else []), *told]) + "\n"


def _latex(table: AblationTable, records: Sequence[Record], command: str, origin: Sequence[str]) -> str:
    """The caption of the means has the data, the fits that failed and all notes: readers of a paper see no comments."""
    head = [r"% \usepackage{booktabs}", f"% {' '.join(command.split())}"]
    means, *others = sheets_of(table)
    data = [f"Fits of {', '.join(origin)}."] if origin else []
    told = [means.caption, *data, *_short(failure_lines(records)), *notes(table)]
    means = means._replace(caption=" ".join(told))
    sheets = [latex(means, "ablation-means"), *(latex(sheet, "ablation-differences") for sheet in others)]
    return "\n".join([*head, *sheets]) + "\n"


def _short(lines: Sequence[str]) -> list[str]:
    return [f"{shorten(line.rstrip('.'), _MOST_OF_A_REASON)}." for line in lines]
