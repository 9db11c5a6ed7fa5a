"""The page of an ablation: one HTML file that needs no other, in the form of the report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inference.ablation.apart import why_apart
from inference.ablation.metrics import Metric
from inference.ablation.notes import notes
from inference.ablation.records import Record
from inference.ablation.sheets import (
    digits_of,
    failure_lines,
    failures_of,
    means_shown,
    metric_title,
    number_of_seeds,
    settings_sheet,
    sheets_of,
    signed,
    with_minus,
)
from inference.ablation.statistics import verdict
from inference.ablation.table import AblationTable, Row
from inference.ablation.text_forms import parts_of
from inference.results.page.parts import Part, Picture, Section, Table
from inference.results.page.pictures import picture_of
from inference.results.report import page_html
from inference.results.text import printable

__all__ = ["ablation_page", "findings", "status_line"]

_MOST_FINDINGS = 8
# Characters beside each other on the page, on paper, too; figures larger than in print, since type is small there.
_WIDTH = 96
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
    sheets = [part for sheet in sheets_of(table) for part in parts_of(sheet, _WIDTH)]
    return [
        Section("table", "Table", notes(table), sheets),
        Section("failures", "Fits that are not ok", failure_lines(records)),
        Section("trials", "Trials", pictures=swept),
        Section(
            "figures", "Figures", [_caption(table)] if figures else [], parts=[_part(m, path) for m, path in figures]
        ),
        Section("cells", "Cells", tables=settings_sheet(table)),
        Section("fits", "All fits", tables=parts_of(_fits(table, records), _WIDTH, 2)),
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
