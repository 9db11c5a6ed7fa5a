"""One record per fit: how it ended, and its numbers. Fits that failed, and cells that are refused, are records, too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference.ablation.graph_distances import graph_distances
from inference.ablation.metrics import Metric
from inference.ablation.plan import Fit, Plan
from inference.ablation.scored_samples import samples_of, scored_in_words
from inference.results.files import write_text
from inference.results.input_files import MOST_TEXT, read_bytes, read_json
from inference.results.run_folder import RunFolder
from inference.results.strict_json import to_json

__all__ = ["STATUSES", "Earlier", "Record", "read_records", "record_of_fit", "records_of", "write_records"]

STATUSES = ("ok", "collapsed", "diverged", "refused", "error", "unfinished")
"""How a fit ends: the three of `summary.json`; its settings or its data were refused; its process failed; not yet."""

_REFUSED_STATUS = 2
_FAILURES = ("refused", "error")


@dataclass(frozen=True)
class Record:
    """A fit.

    Attributes:
        cell: Name of the cell.
        seed: The seed.
        status: One of `STATUSES`.
        reason: Why it is not ok; empty where it is.
        flags: What distinguishes the cell.
        run: Run folder, relative to that of the ablation.
        metrics: Numbers by name of the metric; None where there is none.
        scored_on: The samples that scores against known factors are of, in words; empty where there are none.
        samples: Hashes of the samples that scores are of (`samples_of`); empty in files of earlier versions.
    """

    cell: str
    seed: int
    status: str
    reason: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    scored_on: str = ""
    samples: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As a line of `records.jsonl` has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


Earlier = Mapping[tuple[str, int], Record]
"""Fits of earlier sessions whose process failed, by cell and seed: their exit status is nowhere else."""


def records_of(
    plan: Plan, metrics: Sequence[Metric], ended: Mapping[Path, int], earlier: Earlier | None = None
) -> tuple[Record, ...]:
    """The records of all cells and seeds, in order.

    Args:
        plan: The plan.
        metrics: What is compared.
        ended: Exit statuses of the processes that ended, by run folder.
        earlier: What is told of fits that failed before, and did not run again.
    """
    records = []
    for planned in plan.cells:
        for seed in plan.seeds:
            fit = plan.fit(planned, seed)
            if planned.refusal is None:
                record = record_of_fit(fit, planned.cell.flags, metrics, ended.get(fit.folder), plan.folder)
                record = _or_earlier(record, earlier or {})
            else:
                record = Record(planned.cell.name, seed, "refused", planned.refusal, planned.cell.flags)
            records.append(record)
    return tuple(records)


def _or_earlier(record: Record, earlier: Earlier) -> Record:
    """The failure of the same settings in an earlier session, where the fit has not run since."""
    before = earlier.get((record.cell, record.seed))
    is_same = record.status == "unfinished" and before is not None and before.flags == record.flags
    return before if before is not None and is_same else record


def record_of_fit(
    fit: Fit, flags: Mapping[str, str], metrics: Sequence[Metric], status: int | None, root: Path
) -> Record:
    """The record of a fit, from its folder.

    Args:
        fit: The fit.
        flags: What distinguishes its cell.
        metrics: What is compared.
        status: Exit status of its process; None: none ran.
        root: Folder of the ablation.
    """
    run = str(fit.folder.relative_to(root))
    if not RunFolder(fit.folder).is_complete:
        return Record(fit.cell, fit.seed, *_failure(fit, status), flags, run)
    summary = RunFolder(fit.folder).read_summary()
    sources = {"summary": summary, "evaluate": _scores(fit.folder), "graphs": graph_distances(summary)}
    has_numbers = summary["status"] != "diverged"  # its seconds are those until it failed
    numbers = {metric.name: metric.of(sources) if has_numbers else None for metric in metrics}
    scored = (scored_in_words(summary), samples_of(fit.folder, summary)) if has_numbers else ()
    return Record(fit.cell, fit.seed, summary["status"], _reason(summary), flags, run, numbers, *scored)


def _reason(summary: Mapping[str, Any]) -> str:
    if summary["status"] == "collapsed":
        clusters = summary["clusters"]
        return f"{clusters['n_occupied']} of {clusters['n_requested']} cells are occupied"
    return str(summary.get("reason", ""))


def _failure(fit: Fit, status: int | None) -> tuple[str, str]:
    if status is None:
        return "unfinished", "it has not run to its end"
    last = _last_line(fit.log)
    if status == _REFUSED_STATUS:
        return "refused", last.removeprefix("svi: error: ")
    if status < 0:
        return (
            "error",
            f"its process was killed by signal {-status}, perhaps for want of memory: try fewer --jobs",
        )
    return "error", f"{last} (exit status {status})"


def _last_line(log: Path) -> str:
    lines = _lines(log)
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "it said nothing")


def _lines(path: Path) -> list[str]:
    """Lines of a file of the ablation; none where it is not there, or lies elsewhere."""
    try:
        return read_bytes(path, path.parent, MOST_TEXT).decode("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _scores(folder: Path) -> Any:
    try:
        return read_json(folder / "evaluate.json", folder)
    except (OSError, ValueError):
        return {}


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a line of JSON per record."""
    write_text(path, "".join(to_json(record.to_dict(), indent=None) + "\n" for record in records))


def read_records(path: Path) -> Earlier:
    """The fits whose process failed; none where the file is not there. Damaged lines do not count."""
    records = filter(None, map(_record_from, _lines(path)))
    return {(r.cell, r.seed): r for r in records if r.status in _FAILURES and r.run}


def _record_from(line: str) -> Record | None:
    try:
        record = Record(**json.loads(line))
        return record if all(isinstance(value, str) for value in (record.cell, record.status, record.run)) else None
    except (ValueError, TypeError, RecursionError):
        return None
