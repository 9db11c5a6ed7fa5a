"""The table of an ablation: per cell how its fits ended, and per metric mean, spread and paired difference."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inference.ablation.metrics import METRICS, Metric
from inference.ablation.records import STATUSES, Record
from inference.ablation.scored_samples import LABELS
from inference.ablation.statistics import Difference, Spread, differences_of, paired_difference, spread

__all__ = ["AblationTable", "Row", "csv_text", "table_of"]

Values = Mapping[int, float]

_LARGE = 100
_PLACES = 2
_MOST_DIGITS = 12


@dataclass(frozen=True)
class Row:
    """A cell.

    Attributes:
        cell: Its name.
        flags: What distinguishes it.
        statuses: Number of fits by how they ended.
        values: Per metric, the number of every seed that has one.
        spreads: Per metric, mean and standard deviation.
        differences: Per metric, the difference from the baseline, over the seeds that are scored on the same samples;
            empty for the baseline itself.
        paired: Per metric, the differences that these are the means of, by seed.
        scored_on: The samples that these scores are of, in words, by seed.
        apart: Per metric and seed, what keeps it from being compared: one of `LABELS`, `HELD_OUT`, `MEASURE`.
    """

    cell: str
    flags: Mapping[str, str]
    statuses: Mapping[str, int]
    values: Mapping[str, Values]
    spreads: Mapping[str, Spread]
    differences: Mapping[str, Difference]
    paired: Mapping[str, Values]
    scored_on: Mapping[int, str] = field(default_factory=dict)
    apart: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    @property
    def n_fits(self) -> int:
        """Number of fits, failed ones included."""
        return sum(self.statuses.values())


@dataclass(frozen=True)
class AblationTable:
    """All cells.

    Attributes:
        rows: The cells, in order.
        metrics: Those that any fit has.
        baseline: Name of the cell that the others are compared with.
        seeds: The seeds.
        remarks: Sentences on the cells that a reader must know.
    """

    rows: tuple[Row, ...]
    metrics: tuple[Metric, ...]
    baseline: str
    seeds: tuple[int, ...]
    remarks: tuple[str, ...] = ()

    @property
    def statuses(self) -> tuple[str, ...]:
        """How fits ended, `ok` and whatever else there is."""
        return tuple(name for name in STATUSES if name == "ok" or any(row.statuses.get(name) for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """As `table.json` has it."""
        metrics = {m.name: {"label": m.label, "better": m.better, "paths": list(m.paths)} for m in self.metrics}
        return {
            "baseline": self.baseline,
            "seeds": list(self.seeds),
            "remarks": list(self.remarks),
            "metrics": metrics,
            "cells": {row.cell: _row_dict(row) for row in self.rows},
        }


def _row_dict(row: Row) -> dict[str, Any]:
    metrics = {
        name: {
            **row.spreads[name]._asdict(),
            "values": {str(seed): value for seed, value in row.values[name].items()},
            "difference": row.differences[name]._asdict() if name in row.differences else None,
        }
        for name in row.spreads
    }
    return {"flags": dict(row.flags), "statuses": dict(row.statuses), "metrics": metrics}


def table_of(records: Sequence[Record], metrics: Sequence[Metric], baseline: str) -> AblationTable:
    """The table of records. Metrics that no fit has are left out; those of collapsed fits count.

    Args:
        records: All of them, cell by cell.
        metrics: What is compared.
        baseline: Name of the cell that the others are compared with.
    """
    shown = tuple(
        _with_digits(m, numbers)
        for m in metrics
        if (numbers := [value for record in records if (value := record.metrics.get(m.name)) is not None])
    )
    by_cell: dict[str, list[Record]] = {}
    for record in records:
        by_cell.setdefault(record.cell, []).append(record)
    reference = by_cell.get(baseline, [])
    rows = tuple(_row(name, own, shown, None if name == baseline else reference) for name, own in by_cell.items())
    return AblationTable(rows, shown, baseline, tuple(dict.fromkeys(record.seed for record in records)))


def _with_digits(metric: Metric, numbers: Sequence[float]) -> Metric:
    """Of what is named by its path: counts have no decimal places, small ones one for their mean; the rest enough."""
    if metric.name in METRICS:
        return metric
    largest = max(map(abs, numbers))
    if all(float(value).is_integer() for value in numbers):
        return replace(metric, digits=0 if largest >= _LARGE else 1)
    return replace(metric, digits=min(max(metric.digits, _PLACES - math.floor(math.log10(largest))), _MOST_DIGITS))


def _row(cell: str, records: Sequence[Record], metrics: Sequence[Metric], reference: Sequence[Record] | None) -> Row:
    values = {m.name: _values(records, m) for m in metrics}
    compared = () if reference is None else metrics
    usual = {m.name: _values(reference or (), m) for m in compared}
    apart = {m.name: _apart(m, records, reference or ()) for m in compared}
    same = {name: {s: x for s, x in numbers.items() if s not in apart[name]} for name, numbers in usual.items()}
    return Row(
        cell,
        records[0].flags,
        Counter(record.status for record in records),
        values,
        {name: spread(numbers) for name, numbers in values.items()},
        {name: paired_difference(values[name], numbers) for name, numbers in same.items()},
        {name: differences_of(values[name], numbers) for name, numbers in same.items()},
        {record.seed: record.scored_on for record in records if record.scored_on},
        {name: found for name, numbers in usual.items() if (found := _seeds_apart(values[name], numbers, apart[name]))},
    )


def _apart(metric: Metric, records: Sequence[Record], reference: Sequence[Record]) -> dict[int, str]:
    """What differs in the samples of the cell and of the baseline, by seed; only seeds that are not to be compared."""
    own = {record.seed: record for record in records}
    found = {other.seed: _difference_in(metric, own[other.seed], other) for other in reference if other.seed in own}
    return {seed: kind for seed, kind in found.items() if kind}


def _difference_in(metric: Metric, one: Record, other: Record) -> str:
    """The first of what the metric depends on that is known to differ; of an earlier version the words alone are."""
    for kind in metric.compared_on:
        hashes = {fit.samples[kind] for fit in (one, other) if kind in fit.samples}
        if len(hashes) > 1 or (kind == LABELS and one.scored_on != other.scored_on):
            return kind
    return ""


def _seeds_apart(values: Values, baseline: Values, apart: Mapping[int, str]) -> dict[int, str]:
    return {seed: kind for seed, kind in apart.items() if seed in values and seed in baseline}


def _values(records: Sequence[Record], metric: Metric) -> dict[int, float]:
    found = {record.seed: record.metrics.get(metric.name) for record in records}
    return {seed: value for seed, value in found.items() if value is not None}


def csv_text(table: AblationTable) -> str:
    """A line per cell, with every digit; what is not there is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("mean", "sd", "n", "difference", "lower", "upper", "n_pairs")
    writer.writerow(["cell", "fits", *STATUSES, *(f"{m.name}_{column}" for m in table.metrics for column in columns)])
    for row in table.rows:
        counts = [row.statuses.get(status, 0) for status in STATUSES]
        writer.writerow([row.cell, row.n_fits, *counts, *(x for m in table.metrics for x in _columns(row, m))])
    return text.getvalue()


def _columns(row: Row, metric: Metric) -> list[object]:
    found = row.spreads[metric.name]
    difference = row.differences.get(metric.name)
    paired = [None] * 4 if difference is None else [*difference[1:], difference.n]
    return ["" if value is None else value for value in (found.mean, found.sd, found.n, *paired)]
