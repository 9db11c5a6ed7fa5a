"""The table of an ablation in texts, from which all its forms are made: means, differences, failures, notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference.ablation.metrics import Metric
from inference.ablation.records import Record
from inference.ablation.statistics import CONFIDENCE, FEW_SEEDS, Difference, Spread
from inference.ablation.table import AblationTable, Row
from inference.results.page.parts import Table
from inference.results.text import printable

__all__ = [
    "difference_sheet",
    "failure_lines",
    "failures_of",
    "mean_sheet",
    "metric_title",
    "notes",
    "settings_sheet",
    "sheets_of",
    "signed",
    "with_minus",
]

_ARROWS = {1: " ↑", -1: " ↓", 0: ""}


def sheets_of(table: AblationTable) -> tuple[Table, ...]:
    """The sheet of means, and that of differences where there are any."""
    return (mean_sheet(table), difference_sheet(table)) if _most_pairs(table) else (mean_sheet(table),)


def _most_pairs(table: AblationTable) -> int:
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
        [printable(row.cell), *(_difference_text(row.differences[m.name], m) for m in table.metrics)]
        for row in table.rows
        if row.cell != table.baseline
    ]
    interval = f" and {100 * CONFIDENCE:.0f} % bootstrap interval"
    few = f"; fewer than {FEW_SEEDS} seeds have no interval and tell little"
    return Table(
        f"Difference from {printable(table.baseline)}, paired by seed: mean"
        f"{few if len(table.seeds) < FEW_SEEDS else interval}.",
        ["cell", *map(metric_title, table.metrics)],
        rows,
    )


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


def _difference_text(found: Difference, metric: Metric) -> str:
    if found.mean is None:
        return "-"
    mean = signed(found.mean, metric.digits)
    if found.lower is None or found.upper is None:
        return mean
    return f"{mean} [{signed(found.lower, metric.digits)}, {signed(found.upper, metric.digits)}]"


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


def notes(table: AblationTable) -> list[str]:
    """What a reader must know to read the numbers rightly."""
    return list(_notes(table))


def _notes(table: AblationTable) -> Iterator[str]:
    if any(failures_of(row) for row in table.rows):
        yield (
            "Fits that are not ok are counted, not left out: those that collapsed are in the means; those that "
            "diverged, were refused or ended with an error have no numbers, and n says how many are left."
        )
    if _most_pairs(table) >= FEW_SEEDS:
        yield "Intervals are of each comparison alone: of twenty about one leaves zero out by chance."
    yield from map(printable, table.remarks)
    yield from _scored_on(table)
    yield from _of_nodes(table)
    yield from _units(table)
    if any(metric.name == "objective" for metric in table.metrics):
        yield (
            "The objective of a fit is its own bound, on validation samples where there are some: between different "
            "objectives, priors or data it compares nothing."
        )


def _scored_on(table: AblationTable) -> Iterator[str]:
    """That cells with and without labels are scored on other samples."""
    if not any(metric.is_of_labels for metric in table.metrics):
        return
    kinds: dict[str, list[str]] = {}
    for row in table.rows:
        for kind in dict.fromkeys(words.partition(" ")[2] for words in row.scored_on.values()):
            kinds.setdefault(kind, []).append(printable(row.cell))
    if len(kinds) > 1:
        told = "; ".join(f"{', '.join(cells)}: {kind}" for kind, cells in kinds.items())
        yield (
            f"Scores against known factors are not of the same samples ({told}): labels that a fit used are left out. "
            "There is no difference between such scores."
        )


def _of_nodes(table: AblationTable) -> Iterator[str]:
    """What scores of nodes are where nobody named them."""
    names = {metric.name for metric in table.metrics}
    if names & {"node_accuracy_mean", "node_accuracy_worst", "cpdag_shd"}:
        yield (
            "Node accuracy and the SHD of that name are of the best assignment of nodes to factors, which looks at the "
            "truth: of nodes that nobody named they are no result. node_accuracy_chance is what random names reach."
        )


def _units(table: AblationTable) -> Iterator[str]:
    """What numbers are in that have no unit in their label."""
    names = {metric.name for metric in table.metrics}
    if names & {"held_out_log_likelihood", "held_out_bound", "held_out_as_trained", "objective"}:
        yield "Log p(x) and bounds are in nats per sample."
    if "entropy" in names:
        yield (
            "Entropy is that of q(N | X) in nats, mean over samples: 0 where every sample is in one cell for certain, "
            "ln of the number of cells where nothing is known. Neither is better in itself."
        )


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
