"""The fits of an ablation: which of them are still to run, and a line for each as it ends."""

from __future__ import annotations

import math
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from inference.ablation.metrics import Metric
from inference.ablation.own_code import keep_code
from inference.ablation.plan import Fit, Plan
from inference.ablation.records import Earlier, Record, read_records, records_of, write_records
from inference.ablation.workers import Ended, run_fits, start_process
from inference.command_line.ablate_arguments import Arguments
from inference.results.run_folder import RunFolder

__all__ = ["Fits", "scored_cells", "start_fit"]

_WORKER = "inference.command_line.ablate_worker"


class Fits:
    """Runs the fits of plans, each once in this session.

    Args:
        arguments: What is compared, how many fits at once, and whether each gets a line.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._ended: dict[Path, int] = {}
        self._seconds: list[float] = []
        self._earlier: Earlier = read_records(arguments.output_dir / "records.jsonl")

    def run(self, plan: Plan) -> tuple[Record, ...]:
        """Run what is unfinished, with the records on disk after every fit; returns them."""
        metrics = self._arguments.metrics
        if self._arguments.table_only:
            return records_of(plan, metrics, self._ended, self._earlier)
        keep_code(plan)
        scored = scored_cells(plan, metrics)
        waiting = [fit for fit in plan.fits if not self._is_done(fit, fit.cell in scored)]
        n_before, n_all = self._progress(plan, waiting)
        for n, end in enumerate(
            run_fits(waiting, self._arguments.jobs, lambda fit: start_fit(fit, fit.cell in scored)), n_before + 1
        ):
            self._ended[end.fit.folder] = end.status
            self._seconds.append(end.seconds)
            records = records_of(plan, metrics, self._ended, self._earlier)
            write_records(plan.folder / "records.jsonl", records)
            if not self._arguments.quiet:
                print(_line(end, records, f"{n}/{n_all}", self._left(n, n_all)), flush=True)
        return records_of(plan, metrics, self._ended, self._earlier)

    def _progress(self, plan: Plan, waiting: Sequence[Fit]) -> tuple[int, int]:
        """Fits that ended before, and fits in all: of a sweep over all its trials, of other cells those that wait."""
        if not self._arguments.sweep:
            return 0, len(waiting)
        n_all = (1 + self._arguments.trials) * len(self._arguments.seeds)
        return len(plan.cells) * len(plan.seeds) - len(waiting), n_all

    def _left(self, n_ended: int, n_all: int) -> str:
        """How long the rest takes, if it takes as long as what was run."""
        seconds = statistics.fmean(self._seconds) * (n_all - n_ended) / self._arguments.jobs
        return f"; about {math.ceil(seconds / 60)} min left" if n_ended < n_all else ""

    def _is_done(self, fit: Fit, scored: bool) -> bool:
        folder = RunFolder(fit.folder)
        is_scored = not scored or (fit.folder / "evaluate.json").is_file() or not folder.posterior.is_file()
        return fit.folder in self._ended or (folder.is_complete and is_scored)


def start_fit(fit: Fit, scored: bool) -> subprocess.Popen[bytes]:
    """Start a fit, with its scores afterwards or without."""
    return start_process(fit, ["-m", _WORKER, str(fit.folder), "scores" if scored else "-", *fit.words])


def scored_cells(plan: Plan, metrics: Sequence[Metric]) -> set[str]:
    """Cells whose fits `inference.evaluate` scores: cross-modal prediction takes two modalities."""
    asked = [path for metric in metrics for path in metric.paths if path.startswith("evaluate.")]
    least = 1 if any(not path.startswith("evaluate.cross_modal.") for path in asked) else 2
    return {planned.cell.name for planned in plan.cells if asked and planned.n_modalities >= least}


def _line(end: Ended, records: Sequence[Record], count: str, left: str) -> str:
    record = next(r for r in records if (r.cell, r.seed) == (end.fit.cell, end.fit.seed))
    reason = f": {record.reason}" if record.reason else ""
    is_told = all(value in record.cell for value in record.flags.values())
    settings = "" if is_told else f" ({', '.join(f'{flag}={value}' for flag, value in record.flags.items())})"
    return f"{count} {record.cell}{settings}, seed {record.seed}: {record.status}{reason} ({end.seconds:.0f} s{left})"
