"""What `python -m inference.ablate` does with its arguments: run the cells, and write the table after every fit."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from inference.ablation.metrics import Metric
from inference.ablation.plan import Fit, Plan
from inference.ablation.records import Record, records_of, write_records
from inference.ablation.results import terminal_text, write_results
from inference.ablation.table import table_of
from inference.ablation.workers import Ended, run_fits, start_process
from inference.command_line.ablate_arguments import Arguments
from inference.command_line.ablate_plan import check_unchanged, plan_of
from inference.command_line.errors import FAILED_FIT
from inference.results.files import make_folder, write_json
from inference.results.run_folder import RunFolder

__all__ = ["dry_run", "run"]

Start = Callable[[Fit, bool], subprocess.Popen[bytes]]


def dry_run(arguments: Arguments) -> int:
    """Print the cells, those that are refused, the number of fits and the time; nothing is written."""
    plan = plan_of(arguments)
    check_unchanged(plan)
    print("\n".join(_cell_lines(plan)))
    return 0


def run(arguments: Arguments, argv: Sequence[str]) -> int:
    """Run what is unfinished, write the table and print it; returns the exit status.

    Raises:
        ValueError: Settings that cannot run, or a folder that holds something else.
    """
    plan = plan_of(arguments)
    check_unchanged(plan)
    make_folder(plan.folder)
    with RunFolder(plan.folder).in_use():
        write_json(plan.folder / "ablation.json", _definition(plan, argv))
        print("\n".join(_cell_lines(plan)), flush=True)
        try:
            records = _run_fits(plan, arguments)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"finished fits are kept; go on with: {_command(argv)}")
            raise
        table = write_results(plan.folder, table_of(records, arguments.metrics, plan.baseline), records, _command(argv))
        if arguments.json is not None:
            write_json(arguments.json, table.to_dict())
        print(f"\n{terminal_text(table, records)}\n\nFiles     {plan.folder}")
    return _exit_status(records)


def _command(argv: Sequence[str]) -> str:
    return f"python -m inference.ablate {shlex.join(argv)}"


def _run_fits(plan: Plan, arguments: Arguments) -> tuple[Record, ...]:
    scores = _scored_cells(plan, arguments.metrics)
    waiting = [fit for fit in plan.fits if not _is_done(fit, fit.cell in scores)]
    ended: dict[Path, int] = {}
    for end in run_fits(waiting, arguments.jobs, lambda fit: start_fit(fit, fit.cell in scores)):
        ended[end.fit.folder] = end.status
        records = records_of(plan, arguments.metrics, ended)
        write_records(plan.folder / "records.jsonl", records)
        if not arguments.quiet:
            print(_line(end, records, len(ended), len(waiting)), flush=True)
    return records_of(plan, arguments.metrics, ended)


def start_fit(fit: Fit, scored: bool) -> subprocess.Popen[bytes]:
    """Start a fit, with its scores afterwards or without."""
    command = ["-m", "inference.command_line.ablate_worker", str(fit.folder), "scores" if scored else "-", *fit.words]
    return start_process(fit, command)


def _scored_cells(plan: Plan, metrics: Sequence[Metric]) -> set[str]:
    """Cells whose fits `inference.evaluate` scores: cross-modal prediction takes two modalities."""
    asked = [metric for metric in metrics if metric.needs_scores]
    least = 1 if any("cross_modal" not in path for metric in asked for path in metric.paths) else 2
    return {planned.cell.name for planned in plan.cells if asked and planned.n_modalities >= least}


def _is_done(fit: Fit, scored: bool) -> bool:
    folder = RunFolder(fit.folder)
    is_scored = not scored or (fit.folder / "evaluate.json").is_file() or not folder.posterior.is_file()
    return folder.is_complete and is_scored


def _definition(plan: Plan, argv: Sequence[str]) -> dict[str, object]:
    cells = {
        planned.cell.name: {
            "folder": planned.cell.folder,
            "flags": dict(planned.cell.flags),
            "refused": planned.refusal,
            "settings": planned.settings,
        }
        for planned in plan.cells
    }
    return {"arguments": list(argv), "baseline": plan.baseline, "seeds": list(plan.seeds), "cells": cells}


def _cell_lines(plan: Plan) -> list[str]:
    lines = []
    for planned in plan.cells:
        mark = "refused" if planned.refusal else "baseline" if planned.cell.name == plan.baseline else "cell"
        lines.append(f"{mark:<9} {planned.cell.name}{f': {planned.refusal}' if planned.refusal else ''}")
    return [*lines, f"fits      {len(plan.fits)}: {len(plan.seeds)} seeds each"]


def _line(end: Ended, records: Sequence[Record], n_ended: int, n_all: int) -> str:
    record = next(r for r in records if (r.cell, r.seed) == (end.fit.cell, end.fit.seed))
    reason = f": {record.reason}" if record.reason else ""
    return f"{n_ended}/{n_all} {record.cell}, seed {record.seed}: {record.status}{reason} ({end.seconds:.0f} s)"


def _exit_status(records: Sequence[Record]) -> int:
    statuses = [record.status for record in records]
    failed = [record for record in records if record.status == "error"]
    for record in failed:
        print(f"warning: {record.cell}, seed {record.seed}: {record.reason}; see {record.run}.log", file=sys.stderr)
    return FAILED_FIT if failed or "ok" not in statuses else 0
