"""The page of an ablation: one HTML file that needs no other, in the form of the report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inference.ablation.metrics import Metric
from inference.ablation.records import Record
from inference.ablation.sheets import failure_lines, metric_title, notes, number_of_seeds, sheets_of, signed
from inference.ablation.statistics import Difference, verdict
from inference.ablation.table import AblationTable
from inference.results.page.parts import Part, Picture, Section, Table
from inference.results.page.pictures import picture_of
from inference.results.report import page_html
from inference.results.text import format_number, printable

__all__ = ["ablation_page", "findings", "status_line"]

_MOST_FINDINGS = 8
_CAPTION = (
    "Left: a ring per seed, the mean and its 95 % bootstrap interval. "
    "Right: differences from the baseline, paired by seed."
)


def ablation_page(
    table: AblationTable,
    records: Sequence[Record],
    figures: Sequence[tuple[Metric, Path]],
    command: str,
    trials: Path | None = None,
) -> str:
    """The page as HTML.

    Args:
        table: The table.
        records: All fits.
        figures: A picture per metric.
        command: How it was made.
        trials: Picture of a sweep's trials, or None.
    """
    statuses = [record.status for record in records]
    facts = [f"{len(table.rows)} cells", number_of_seeds(table), f"baseline {printable(table.baseline)}"]
    return page_html(
        "Ablation",
        all(status == "ok" for status in statuses),
        status_line(records),
        findings(table) or ["No metric that is better one way was compared."],
        facts,
        [section for section in _sections(table, records, figures, command, trials) if section.is_filled],
    )


def status_line(records: Sequence[Record]) -> str:
    """How many fits are ok, and how the others ended."""
    statuses = [record.status for record in records]
    others = [f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses) if status != "ok"]
    return "; ".join([f"{statuses.count('ok')} of {len(statuses)} fits are ok", *others])


def findings(table: AblationTable) -> list[str]:
    """One sentence per cell on the first metric that is better one way."""
    metric = next((m for m in table.metrics if m.better), None)
    if metric is None:
        return []
    rows = [row for row in table.rows if metric.name in row.differences]
    told = [_sentence(row.cell, row.differences[metric.name], metric, table.baseline) for row in rows]
    more = [f"{len(told) - _MOST_FINDINGS} more cells are in the tables below."] if len(told) > _MOST_FINDINGS else []
    return told[:_MOST_FINDINGS] + more


def _sentence(cell: str, found: Difference, metric: Metric, baseline: str) -> str:
    if found.mean is None:
        return printable(f"{cell}: no {metric.label} to compare.")
    number = signed(found.mean, metric.digits)
    if found.lower is None or found.upper is None:
        return printable(f"{cell}: {metric.label} {number} against {baseline}, on {found.n} seed: no interval.")
    interval = f"{signed(found.lower, metric.digits)} to {signed(found.upper, metric.digits)}, {found.n} seeds"
    return printable(
        f"{cell}: {metric.label} {number} ({interval}) against {baseline}: {verdict(found, metric.better)}."
    )


def _sections(
    table: AblationTable,
    records: Sequence[Record],
    figures: Sequence[tuple[Metric, Path]],
    command: str,
    trials: Path | None,
) -> list[Section]:
    swept = [] if trials is None else [picture_of(trials, "", "", "The metric of every trial over each setting")]
    return [
        Section("table", "Table", notes(table), sheets_of(table)),
        Section("failures", "Fits that are not ok", failure_lines(records)),
        Section("trials", "Trials", pictures=swept),
        Section("figures", "Figures", [_CAPTION] if figures else [], parts=[_part(m, path) for m, path in figures]),
        Section("cells", "Cells", tables=_cells(table)),
        Section("fits", "All fits", tables=[_fits(table, records)]),
        Section("command", "How it was made", texts=[("Command", command)]),
    ]


def _part(metric: Metric, path: Path) -> Part:
    return Part(metric_title(metric), pictures=[_picture(metric, path)])


def _picture(metric: Metric, path: Path) -> Picture:
    return picture_of(path, "", "", f"{metric.label} of every cell, and its differences from the baseline")


def _cells(table: AblationTable) -> list[Table]:
    """What distinguishes cells whose names do not say it."""
    settings = {row.cell: ", ".join(f"{flag}={value}" for flag, value in row.flags.items()) for row in table.rows}
    if all(cell == words.replace(", ", ",") for cell, words in settings.items()):
        return []
    rows = [[printable(cell), printable(words) or "-"] for cell, words in settings.items()]
    return [Table("", ["cell", "settings"], rows, is_numeric=False)]


def _fits(table: AblationTable, records: Sequence[Record]) -> Table:
    head = ["cell", "seed", "status", *map(metric_title, table.metrics), "folder"]
    return Table("", head, [_fit(record, table.metrics) for record in records])


def _fit(record: Record, metrics: Sequence[Metric]) -> list[str]:
    numbers = [format_number(record.metrics.get(m.name), m.digits, "") for m in metrics]
    return [printable(record.cell), str(record.seed), record.status, *numbers, printable(record.run)]
