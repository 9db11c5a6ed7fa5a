"""What `python -m inference.ablate` does with its arguments: run the cells, and write the table."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from inference.ablation.absent_learners import absent_learners
from inference.ablation.absent_scores import absent_scores
from inference.ablation.origin import origin_of
from inference.ablation.plan import Plan
from inference.ablation.records import Record
from inference.ablation.results import terminal_text, write_results
from inference.ablation.silent_differences import silent_differences
from inference.ablation.table import AblationTable, table_of
from inference.command_line.ablate_arguments import Arguments
from inference.command_line.ablate_data import data_text
from inference.command_line.ablate_estimate import time_lines
from inference.command_line.ablate_fits import Fits, scored_cells
from inference.command_line.ablate_plan import check_unchanged, plan_of
from inference.command_line.ablate_refusals import other_baseline
from inference.command_line.ablate_sweep import sweep_plan
from inference.command_line.errors import FAILED_FIT
from inference.results.files import make_folder, write_json
from inference.results.run_folder import RunFolder

__all__ = ["dry_run", "run"]


def dry_run(arguments: Arguments) -> int:
    """Print the cells, those that are refused, the number of fits and the time; nothing is written."""
    plan = plan_of(arguments)
    check_unchanged(plan)
    _warn_of_baseline(arguments, plan)
    _tell_data(plan)
    print("\n".join([*_cell_lines(plan, arguments), *time_lines(plan, arguments)]))
    return 0


def run(arguments: Arguments, argv: Sequence[str]) -> int:
    """Run what is unfinished, write the table and print it; returns the exit status.

    Raises:
        ValueError: Settings that cannot run, or a folder that holds something else.
    """
    command = f"python -m inference.ablate {shlex.join(argv)}"
    plan = plan_of(arguments)
    check_unchanged(plan)
    if arguments.table_only:
        _check_begun(plan.folder)
    with nullcontext() if arguments.table_only else _in_folder(plan.folder, command):
        if not arguments.table_only:
            _tell_data(plan)
        print("\n".join(_cell_lines(plan, arguments)), flush=True)
        _warn_of_baseline(arguments, plan)
        write_json(plan.folder / "ablation.json", _definition(plan, argv))
        fits = Fits(arguments)
        if arguments.sweep:
            plan, records = sweep_plan(plan, arguments, fits)
            write_json(plan.folder / "ablation.json", _definition(plan, argv))
        else:
            records = fits.run(plan)
        _leave(plan, arguments, records, command)
    return _exit_status(records, plan.folder)


@contextmanager
def _in_folder(folder: Path, command: str) -> Iterator[None]:
    """No other process is at it meanwhile; who interrupts is told how to go on."""
    with RunFolder(make_folder(folder)).in_use():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(f"finished fits and epochs are kept; go on with: {command}")
            raise


def _check_begun(folder: Path) -> None:
    if not (folder / "ablation.json").is_file():
        raise ValueError(f"output_dir: expected an ablation that was begun, got {folder}; leave --table_only out")


def _tell_data(plan: Plan) -> None:
    text = data_text(plan)
    if text is not None:
        print(f"{text}\n", flush=True)


def _leave(plan: Plan, arguments: Arguments, records: Sequence[Record], command: str) -> None:
    found = table_of(records, arguments.metrics, plan.baseline)
    absent = (*absent_learners(plan), *absent_scores(plan, scored_cells(plan, arguments.metrics)))
    table = dataclasses.replace(found, remarks=(*silent_differences(plan), *absent))
    metric = next((m for m in table.metrics if arguments.metric is not None and m.name == arguments.metric.name), None)
    swept = None if metric is None else (arguments.sweep, metric)
    write_results(plan.folder, table, records, command, swept, origin_of(plan))
    if arguments.json is not None:
        write_json(arguments.json, table.to_dict())
    print(f"\n{terminal_text(table, records)}\n\nFiles     {plan.folder}")
    _warn_of_absent(arguments, table, records)


def _warn_of_absent(arguments: Arguments, table: AblationTable, records: Sequence[Record]) -> None:
    """A metric that was asked for, and that no fit has, is told: it may be misspelled."""
    shown = {metric.name for metric in table.metrics}
    absent = [
        metric.name for metric in arguments.metrics if metric.name in arguments.asked and metric.name not in shown
    ]
    if absent and any(record.metrics for record in records):
        print(
            f"warning: no fit has {', '.join(absent)}; names are in docs/ablate.md, paths in docs/run_folder.md and "
            "docs/evaluate.md",
            file=sys.stderr,
        )


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


def _cell_lines(plan: Plan, arguments: Arguments) -> list[str]:
    lines = []
    for planned in plan.cells:
        mark = "refused" if planned.refusal else "baseline" if planned.cell.name == plan.baseline else "cell"
        lines.append(f"{mark:<9} {planned.cell.name}{f': {planned.refusal}' if planned.refusal else ''}")
    lines += [f"note      {text}" for text in silent_differences(plan)]
    n_done = sum(RunFolder(fit.folder).is_complete for fit in plan.fits)
    done = f", {n_done} of them finished" if n_done else ""
    if arguments.sweep:
        n_all = (1 + arguments.trials) * len(plan.seeds)
        trials = f"{arguments.trials} beside the default, so {n_all} fits, with seeds {', '.join(map(str, plan.seeds))}"
        return [*lines, f"trials    {trials}"]
    return [*lines, f"fits      {len(plan.fits)}, with seeds {', '.join(map(str, plan.seeds))}{done}"]


def _warn_of_baseline(arguments: Arguments, plan: Plan) -> None:
    warning = other_baseline(arguments, plan.cells, plan.baseline)
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)


def _exit_status(records: Sequence[Record], folder: Path) -> int:
    statuses = [record.status for record in records]
    failed = [record for record in records if record.status == "error"]
    for record in failed:
        log = folder / f"{record.run}.log"
        print(f"warning: {record.cell}, seed {record.seed}: {record.reason}; see {log}", file=sys.stderr)
    return FAILED_FIT if failed or "ok" not in statuses else 0
