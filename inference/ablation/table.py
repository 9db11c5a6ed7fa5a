"""The table of an ablation: per cell how its fits ended, and per metric mean, spread and paired difference."""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy

from causalpima.inference.ablation.records import HELD_OUT, LABELS, MEASURE, METRICS, STATUSES, Metric, Record
from causalpima.inference.store.text import printable

__all__ = [
    "CONFIDENCE",
    "FEW_SEEDS",
    "AblationTable",
    "Difference",
    "Row",
    "Spread",
    "bootstrap_interval",
    "csv_text",
    "differences_of",
    "mean_interval",
    "notes_on_samples",
    "paired_difference",
    "spread",
    "table_of",
    "verdict",
    "why_apart",
]


# Means over seeds, and differences from the baseline that are paired by seed.
#
# For a metric x and seeds s: $d_s = x_s^{\text{cell}} - x_s^{\text{baseline}}$, over the seeds that both have. Data,
# split and seed of both fits are the same, so that what varies between seeds drops out of the difference.


CONFIDENCE = 0.95
FEW_SEEDS = 6
"""With fewer a bootstrap interval is narrower than the spread of what it is made of: there is none."""

_RESAMPLES = 9999
_ROUNDING = 1e-12
# A bound is a quantile of 9999 resampled means: were these normal, its standard error would be 0.7 % of the width.
_UNRESOLVED = 0.01


class Spread(NamedTuple):
    """Mean and standard deviation (n - 1 below it) of `n` numbers; None where too few."""

    n: int
    mean: float | None
    sd: float | None


class Difference(NamedTuple):
    """Mean of `n` paired differences with the bounds of its bootstrap interval; None where too few."""

    n: int
    mean: float | None
    lower: float | None
    upper: float | None


def spread(values: Mapping[int, float]) -> Spread:
    """Mean and standard deviation over seeds.

    >>> spread({0: 1.0, 1: 3.0})
    Spread(n=2, mean=2.0, sd=1.4142135623730951)
    """
    numbers = np.array(list(values.values()))
    mean = float(numbers.mean()) if len(numbers) else None
    return Spread(len(numbers), mean, float(numbers.std(ddof=1)) if len(numbers) > 1 else None)


def differences_of(values: Mapping[int, float], baseline: Mapping[int, float]) -> dict[int, float]:
    """Differences from the baseline by seed, over the seeds of both; what only rounding leaves is zero.

    Args:
        values: By seed.
        baseline: The same of the baseline.

    >>> differences_of({0: 0.1 + 0.2, 1: 0.5}, {0: 0.3, 2: 1.0})
    {0: 0.0}
    """
    return {seed: _without_rounding(value, baseline[seed]) for seed, value in values.items() if seed in baseline}


def _without_rounding(value: float, usual: float) -> float:
    """The same clusters in another order have scores that differ in their last places."""
    return 0.0 if math.isclose(value, usual, rel_tol=_ROUNDING, abs_tol=_ROUNDING) else value - usual


def paired_difference(values: Mapping[int, float], baseline: Mapping[int, float]) -> Difference:
    """Mean of the differences from the baseline, over the seeds of both, with its interval.

    A bound nearer to zero than 1 % of the width of the interval, about as near as resampling can tell, is zero.

    Args:
        values: By seed.
        baseline: The same of the baseline.
    """
    differences = np.array(list(differences_of(values, baseline).values()))
    mean = float(differences.mean()) if len(differences) else None
    return Difference(len(differences), mean, *_resolved(*mean_interval(differences)))


def _resolved(lower: float | None, upper: float | None) -> tuple[float | None, float | None]:
    if lower is None or upper is None:
        return lower, upper
    nearest = _UNRESOLVED * (upper - lower)
    return (0.0 if abs(lower) < nearest else lower), (0.0 if abs(upper) < nearest else upper)


def mean_interval(values: np.ndarray) -> tuple[float | None, float | None]:
    """`bootstrap_interval` of six numbers or more; fewer have none."""
    return (None, None) if len(values) < FEW_SEEDS else bootstrap_interval(values)


def bootstrap_interval(values: np.ndarray) -> tuple[float, float]:
    """Bootstrap interval of the mean: bias-corrected and accelerated (Efron 1987), percentiles where that is undefined.

    Args:
        values: Numbers `[n]`, two or more.
    """
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    accelerated = _interval(values, "BCa")
    return accelerated if all(map(math.isfinite, accelerated)) else _interval(values, "percentile")


def verdict(found: Difference, better: int) -> str:
    """What an interval says in words.

    Args:
        found: The difference.
        better: 1: more is better, -1: less is better, 0: neither.
    """
    if found.lower is None or found.upper is None or found.n < FEW_SEEDS:
        return "too few seeds to tell"
    if found.lower <= 0 <= found.upper:
        return "no difference is shown"
    return {0: "different", (1 if found.lower > 0 else -1): "better"}.get(better, "worse")


def _interval(values: np.ndarray, method: str) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate resampling distribution: then the bounds are NaN
        found = scipy.stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=_RESAMPLES,
            confidence_level=CONFIDENCE,
            method=method,
            random_state=np.random.default_rng(0),
        ).confidence_interval
    return float(found.low), float(found.high)


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


# What is said of scores that are not compared: of other samples than those of the baseline, or in other units.


def why_apart(row: Row, baseline: Row, metric: Metric) -> str:
    """Why a number of a cell is not compared with that of the baseline, with both sets of samples; empty: it is.

    Args:
        row: The cell.
        baseline: The baseline.
        metric: What is not compared.
    """
    seeds = row.apart.get(metric.name, {})
    if LABELS in seeds.values():
        first = next(seed for seed, kind in seeds.items() if kind == LABELS)
        own, usual = row.scored_on.get(first, "none"), baseline.scored_on.get(first, "none")
        return f"scored on {'other ' if own == usual else ''}{own}, {baseline.cell} on {usual}"
    if HELD_OUT in seeds.values():
        return f"its held-out samples are not those of {baseline.cell}"
    return f"its likelihoods have other units than those of {baseline.cell}" if seeds else ""


def notes_on_samples(table: AblationTable) -> list[str]:
    """A sentence per kind of scores of which some are not compared."""
    return [*_of_labels(table), *_of_held_out(table), *_of_measure(table)]


def _of_labels(table: AblationTable) -> Iterator[str]:
    """That cells with and without labels are scored on other samples, or cells with other data."""
    if not any(metric.is_of_labels for metric in table.metrics):
        return
    cells: dict[str, list[str]] = {}
    for row in table.rows:
        for kind in _kinds(row):
            cells.setdefault(kind, []).append(printable(row.cell))
    if len(cells) > 1:
        told = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in cells.items())
        yield (
            f"Scores against known factors are not of the same samples ({told}): labels that a fit used are left out. "
            "There is no difference between such scores."
        )
    others = [row.cell for row in table.rows if _is_apart(row, LABELS) and len(cells) < 2]
    if others:
        yield (
            f"Scores against known factors are of other samples than those of {printable(table.baseline)} in "
            f"{_listed(others)}: data, split or factors differ. There is no difference between such scores."
        )


def _kinds(row: Row) -> Sequence[str]:
    """`unlabelled samples` or `all samples`, without their number, which may differ from seed to seed."""
    kinds = (words.partition(" ")[2] for words in row.scored_on.values())
    return list(dict.fromkeys("all samples" if kind == "samples" else kind for kind in kinds))


def _of_held_out(table: AblationTable) -> Iterator[str]:
    others = [row.cell for row in table.rows if _is_apart(row, HELD_OUT)]
    if others:
        yield (
            f"Held-out samples are other ones than those of {printable(table.baseline)} in {_listed(others)}: there is "
            "no difference between scores of them."
        )


def _of_measure(table: AblationTable) -> Iterator[str]:
    others = [row.cell for row in table.rows if _is_apart(row, MEASURE)]
    if others:
        yield (
            f"Log p(x) has other units than that of {printable(table.baseline)} in {_listed(others)}, probabilities of "
            "counts or classes in the place of densities, or the reverse: there is no difference between them."
        )


def _is_apart(row: Row, kind: str) -> bool:
    return any(kind in seeds.values() for seeds in row.apart.values())


def _listed(cells: Sequence[str]) -> str:
    return printable(", ".join(cells))
