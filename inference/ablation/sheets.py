"""The table of an ablation in texts, from which all its forms are made: means, differences, failures."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from inference.ablation.metrics import Metric
from inference.ablation.records import Record
from inference.ablation.statistics import CONFIDENCE, FEW_SEEDS, Difference, Spread
from inference.ablation.table import AblationTable, Row
from inference.results.page.parts import Table
from inference.results.text import printable

__all__ = [
    "difference_sheet",
    "digits_of",
    "failure_lines",
    "failures_of",
    "mean_sheet",
    "means_shown",
    "metric_title",
    "most_pairs",
    "settings_sheet",
    "sheets_of",
    "signed",
    "with_minus",
]

_ARROWS = {1: " ↑", -1: " ↓", 0: ""}


def sheets_of(table: AblationTable) -> tuple[Table, ...]:
    """The sheet of means, and that of differences where there are any."""
    return (mean_sheet(table), difference_sheet(table)) if most_pairs(table) else (mean_sheet(table),)


def most_pairs(table: AblationTable) -> int:
    """Most seeds that a difference is over."""
    return max((found.n for row in table.rows for found in row.differences.values()), default=0)


def mean_sheet(table: AblationTable) -> Table:
    """A row per cell: how many fits are ok, how the others ended, and per metric mean ± standard deviation."""
    failed = [failures_of(row) for row in table.rows]
    head = ["cell", "ok", *(["not ok"] if any(failed) else []), *map(metric_title, table.metrics)]
    rows = [
        [
            printable(row.cell),
            f"{row.statuses.get('ok', 0)} of {row.n_fits}",
            *([failures or "-"] if any(failed) else []),
            *(_spread_text(row.spreads[m.name], m, row.n_fits) for m in table.metrics),
        ]
        for row, failures in zip(table.rows, failed, strict=True)
    ]
    spread = "Mean ± standard deviation over" if len(table.seeds) > 1 else "No spread, with"
    return Table(f"{spread} {number_of_seeds(table)}.", head, rows)


def number_of_seeds(table: AblationTable) -> str:
    """How many seeds there are, in words."""
    return f"{len(table.seeds)} seed{'' if len(table.seeds) == 1 else 's'}"


def difference_sheet(table: AblationTable) -> Table:
    """A row per cell but the baseline: mean paired difference and its interval."""
    rows = [
        [printable(row.cell), *(_difference_text(row.differences[m.name], m, len(table.seeds)) for m in table.metrics)]
        for row in table.rows
        if row.cell != table.baseline
    ]
    head = ["cell", *map(metric_title, table.metrics)]
    return Table(f"Difference from {printable(table.baseline)}, paired by seed: mean{_interval(table)}.", head, rows)


def _interval(table: AblationTable) -> str:
    """What is said of intervals: that there are some, that there are none, or where there are none."""
    pairs = [found.n for row in table.rows for found in row.differences.values() if found.n]
    interval = f" and {100 * CONFIDENCE:.0f} % bootstrap interval" if max(pairs, default=0) >= FEW_SEEDS else ""
    few = f"; fewer than {FEW_SEEDS} seeds have no interval and tell little"
    return interval + (few if min(pairs, default=0) < FEW_SEEDS else "")


def means_shown(numbers: Iterable[Collection[int]]) -> str:
    """What figures show of means: `means with 95 % bootstrap intervals`, where there are enough seeds.

    Args:
        numbers: What the means are of, each with its seeds.
    """
    counts = [len(found) for found in numbers if found]
    if max(counts, default=0) < FEW_SEEDS:
        return f"means (fewer than {FEW_SEEDS} seeds have no interval)"
    interval = f"means with {100 * CONFIDENCE:.0f} % bootstrap intervals"
    return interval + (f" (fewer than {FEW_SEEDS} seeds have none)" if min(counts) < FEW_SEEDS else "")


def settings_sheet(table: AblationTable) -> list[Table]:
    """What distinguishes cells whose names do not say it; none where all do."""
    settings = {row.cell: ", ".join(f"{flag}={value}" for flag, value in row.flags.items()) for row in table.rows}
    if all(cell == words.replace(", ", ",") for cell, words in settings.items()):
        return []
    rows = [[printable(cell), printable(words) or "-"] for cell, words in settings.items()]
    return [Table("", ["cell", "settings"], rows, is_numeric=False)]


def metric_title(metric: Metric) -> str:
    """Its label, with an arrow to where it is better."""
    return printable(metric.label) + _ARROWS[metric.better]


def failures_of(row: Row) -> str:
    """How many fits ended otherwise than well, and how: `1 collapsed, 2 refused`."""
    return ", ".join(f"{count} {status}" for status, count in row.statuses.items() if status != "ok" and count)


def _spread_text(found: Spread, metric: Metric, n_fits: int) -> str:
    if found.mean is None:
        return "-"
    spread = "" if found.sd is None else f" ± {found.sd:.{metric.digits}f}"
    return f"{with_minus(found.mean, metric.digits)}{spread}{'' if found.n == n_fits else f' (n={found.n})'}"


def _difference_text(found: Difference, metric: Metric, n_seeds: int) -> str:
    if found.mean is None:
        return "-"
    digits = digits_of(found, metric)
    few = f" (n={found.n})" if found.n < n_seeds else ""
    if found.lower is None or found.upper is None:
        return f"{signed(found.mean, digits)}{few}"
    return f"{signed(found.mean, digits)} [{signed(found.lower, digits)}, {signed(found.upper, digits)}]{few}"


def digits_of(found: Difference, metric: Metric) -> int:
    """Decimal places of a difference: those of its metric, more where its interval would seem to hold zero otherwise.

    Args:
        found: The difference.
        metric: What it is one of.
    """
    if found.lower is None or found.upper is None or found.lower <= 0 <= found.upper:
        return metric.digits
    nearest = min(abs(found.lower), abs(found.upper))
    return max(metric.digits, math.floor(-math.log10(2 * nearest)) + 1)


def with_minus(value: float, digits: int) -> str:
    """With a minus that is as wide as a plus, and none before zero.

    >>> with_minus(-1.25, 1), with_minus(-0.01, 1)
    ('−1.2', '0.0')
    """
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, digits: int) -> str:
    """With its sign, but for what is zero in the digits shown."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def failure_lines(records: Sequence[Record]) -> list[str]:
    """One line per cell and reason: which seeds ended otherwise than well."""
    grouped: dict[tuple[str, str, str], list[int]] = {}
    for record in records:
        if record.status != "ok":
            grouped.setdefault((record.cell, record.status, record.reason), []).append(record.seed)
    return [
        printable(f"{cell}: {status}, seed {', '.join(map(str, seeds))}: {reason}")
        for (cell, status, reason), seeds in grouped.items()
    ]
