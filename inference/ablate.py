"""`python -m inference.ablate`: fit several settings to the same data with the same seeds, and compare them.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 a fit ended with an error or no fit is ok, 130 Ctrl-C,
143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch

from causalpima.inference.ablation.plan import Fit, Plan, keep_code, silent_differences
from causalpima.inference.ablation.records import (
    Earlier,
    Ended,
    Metric,
    Record,
    absent_learners,
    absent_scores,
    origin_of,
    read_records,
    records_of,
    run_fits,
    start_process,
    write_records,
)
from causalpima.inference.ablation.sweep import DEFAULT, Sweep, cell_name
from causalpima.inference.ablation.table import AblationTable, table_of
from causalpima.inference.ablation.writing import best_words, is_better, terminal_text, write_results
from causalpima.inference.command_line.ablate_plan import (
    Options,
    cannot_begin,
    check_unchanged,
    other_baseline,
    plan_of,
    plan_of_cells,
    split_words,
)
from causalpima.inference.command_line.command import Command
from causalpima.inference.command_line.parsing import FAILED_FIT, run_command
from causalpima.inference.command_line.run_data import reading_table, training_seconds
from causalpima.inference.command_line.svi_parser import parse as parse_fit
from causalpima.inference.run import Run
from causalpima.inference.store.files import make_folder, write_json
from causalpima.inference.store.run_folder import RunFolder

__all__ = [
    "COMMAND",
    "Fits",
    "Options",
    "data_text",
    "dry_run",
    "main",
    "parse",
    "run",
    "scored_cells",
    "start_fit",
    "sweep_plan",
    "time_lines",
]


# The fits of an ablation: which of them are still to run, and a line for each as it ends.


_WORKER = "causalpima.inference.ablate_worker"


class Fits:
    """Runs the fits of plans, each once in this session.

    Args:
        options: What is compared, how many fits at once, and whether each gets a line.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._ended: dict[Path, int] = {}
        self._seconds: list[float] = []
        self._earlier: Earlier = read_records(options.output_dir / "records.jsonl")

    def run(self, plan: Plan) -> tuple[Record, ...]:
        """Run what is unfinished, with the records on disk after every fit; returns them."""
        metrics = self._options.compared()
        if self._options.table_only:
            return records_of(plan, metrics, self._ended, self._earlier)
        keep_code(plan)
        scored = scored_cells(plan, metrics)
        waiting = [fit for fit in plan.fits if not self._is_done(fit, fit.cell in scored)]
        n_before, n_all = self._progress(plan, waiting)
        for n, end in enumerate(
            run_fits(waiting, self._options.jobs, lambda fit: start_fit(fit, fit.cell in scored)), n_before + 1
        ):
            self._ended[end.fit.folder] = end.status
            self._seconds.append(end.seconds)
            records = records_of(plan, metrics, self._ended, self._earlier)
            write_records(plan.folder / "records.jsonl", records)
            if not self._options.quiet:
                print(_line(end, records, f"{n}/{n_all}", self._left(n, n_all)), flush=True)
        return records_of(plan, metrics, self._ended, self._earlier)

    def _progress(self, plan: Plan, waiting: Sequence[Fit]) -> tuple[int, int]:
        """Fits that ended before, and fits in all: of a sweep over all its trials, of other cells those that wait."""
        if not self._options.sweep:
            return 0, len(waiting)
        n_all = (1 + self._options.n_trials) * len(self._options.seeds)
        return len(plan.cells) * len(plan.seeds) - len(waiting), n_all

    def _left(self, n_ended: int, n_all: int) -> str:
        """How long the rest takes, if it takes as long as what was run."""
        seconds = statistics.fmean(self._seconds) * (n_all - n_ended) / self._options.jobs
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


# What an ablation read from the user's file: the same for all cells, told once before anything runs.


def data_text(plan: Plan) -> str | None:
    """Samples, labels and modalities as the baseline reads them; None for data that are generated.

    What its data do not suit is told by the fit, which is refused: there is nothing to say before.

    Args:
        plan: The plan.
    """
    fit = next(fit for fit in plan.fits if fit.cell == plan.baseline)
    arguments = parse_fit(fit.words)
    if arguments.file is None:
        return None
    try:
        return reading_table(Run(arguments.make_data(), arguments.config, arguments.device))
    except ValueError:
        return None


# How long an ablation will take, from a few steps of every cell.


_SECONDS_ARE_SHOWN = 120
_ON_TOP = (
    "          start of the program, read-out, figures and scores of each fit come on top, and are most of the time of "
    "short fits; after the first fit the time that is left is told with them"
)


def time_lines(plan: Plan, options: Options) -> list[str]:
    """How long the fits that are unfinished train, and what comes on top; nothing where all are finished.

    Raises:
        ValueError: Data or code of the user's own do not suit a cell, which is named.
    """
    waiting = _waiting(plan, options)
    n_waiting = waiting.total()
    if not n_waiting:
        return []
    words = {fit.cell: fit.words for fit in plan.fits}
    spent = sum(count * _seconds_of(cell, words[cell], options) for cell, count in waiting.items()) / options.jobs
    n_fits = "1 fit" if n_waiting == 1 else f"{n_waiting} fits"
    return [f"time      about {_duration(spent)} of training for {n_fits}, {options.jobs} at once", _ON_TOP]


def _waiting(plan: Plan, options: Options) -> Counter[str]:
    """Unfinished fits of each cell; trials of a sweep count as the default, since their settings are not known yet."""
    if not options.sweep:
        return Counter(fit.cell for fit in plan.fits if not RunFolder(fit.folder).is_complete)
    n_done = sum(RunFolder(path).is_complete for path in (plan.folder / "runs").glob("*/seed-*") if path.is_dir())
    return Counter({plan.baseline: max(0, (1 + options.n_trials) * len(plan.seeds) - n_done)})


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < _SECONDS_ARE_SHOWN else f"{math.ceil(seconds / 60)} min"


def _seconds_of(cell: str, words: tuple[str, ...], options: Options) -> float:
    try:
        return _seconds(words)
    except ValueError as error:
        raise cannot_begin(options, cell, error) from error


def _seconds(words: tuple[str, ...]) -> float:
    """Of one fit of a cell, all its starts together; one thread, as in the processes of the fits."""
    arguments = parse_fit(words)
    torch.set_num_threads(arguments.threads)
    return arguments.restarts * training_seconds(Run(arguments.make_data(), arguments.config, arguments.device))


# A sweep: trials are proposed, run with all seeds, and told how good they were.


def sweep_plan(first: Plan, options: Options, fits: Fits) -> tuple[Plan, tuple[Record, ...]]:
    """Run the trials of a sweep; returns the plan with all of them beside the default, and the records of its fits.

    Args:
        first: The plan of the default.
        options: Ranges, metric, number of trials and seeds.
        fits: Runs the fits.
    """
    goal = options.goal()
    assert goal is not None
    sweep = Sweep(first.folder / "sweep.log", options.sweep, goal, options.seeds)
    plan = plan_of_cells(options, sweep.cells())
    check_unchanged(plan)
    while sweep.n_ended < options.n_trials and not options.table_only:
        at_once = math.ceil(options.jobs / len(options.seeds))
        numbers = sweep.propose(min(at_once, options.n_trials - sweep.n_ended))
        plan = plan_of_cells(options, sweep.cells())
        records = fits.run(plan)
        for number in numbers:
            sweep.tell(number, _value(cell_name(number), records, goal, options.seeds))
    records = fits.run(plan)
    _tell_best(sweep, plan, _value(DEFAULT, records, goal, options.seeds))
    return plan, records


def _value(cell: str, records: Sequence[Record], metric: Metric, seeds: Sequence[int]) -> float | None:
    """Mean over the seeds; None where a seed has no number."""
    values = [record.metrics.get(metric.name) for record in records if record.cell == cell]
    found = [value for value in values if value is not None]
    return statistics.fmean(found) if len(found) == len(seeds) else None


def _tell_best(sweep: Sweep, plan: Plan, default: float | None) -> None:
    best = sweep.best()
    if best is None:
        print("best      no trial: every one failed")
        return
    name, flags, value = best
    number, better = sweep.metric.name, is_better(value, default, sweep.metric)
    found = {"cell": name, "flags": flags, number: value, DEFAULT: default, "is_better_than_default": better}
    write_json(plan.folder / "best.json", found)
    words = " ".join(f"--{flag} {text}" for flag, text in flags.items())
    print(f"best      {best_words(name, value, default, sweep.metric)}: {words}")
    if better is not False:
        print(
            f"          the best of {sweep.n_ended} on these seeds: its value is too good; "
            f"fit it and {DEFAULT} with others"
        )


# What `python -m inference.ablate` does with its arguments: run the cells, and write the table.


def dry_run(options: Options) -> int:
    """Print the cells, those that are refused, the number of fits and the time; nothing is written."""
    plan = plan_of(options)
    check_unchanged(plan)
    _warn_of_baseline(options, plan)
    _tell_data(plan)
    print("\n".join([*_cell_lines(plan, options), *time_lines(plan, options)]))
    return 0


def run(options: Options) -> int:
    """Run what is unfinished, write the table and print it, or only tell of it; returns the exit status.

    Raises:
        ValueError: Settings that cannot run, or a folder that holds something else.
    """
    if options.dry_run:
        return dry_run(options)
    command = f"python -m inference.ablate {shlex.join(options.typed)}"
    plan = plan_of(options)
    check_unchanged(plan)
    if options.table_only:
        _check_begun(plan.folder)
    with nullcontext() if options.table_only else _in_folder(plan.folder, command):
        if not options.table_only:
            _tell_data(plan)
        print("\n".join(_cell_lines(plan, options)), flush=True)
        _warn_of_baseline(options, plan)
        write_json(plan.folder / "ablation.json", _definition(plan, options.typed))
        fits = Fits(options)
        if options.sweep:
            plan, records = sweep_plan(plan, options, fits)
            write_json(plan.folder / "ablation.json", _definition(plan, options.typed))
        else:
            records = fits.run(plan)
        _leave(plan, options, records, command)
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


def _leave(plan: Plan, options: Options, records: Sequence[Record], command: str) -> None:
    found, goal = table_of(records, options.compared(), plan.baseline), options.goal()
    absent = (*absent_learners(plan), *absent_scores(plan, scored_cells(plan, options.compared())))
    table = dataclasses.replace(found, remarks=(*silent_differences(plan), *absent))
    metric = next((m for m in table.metrics if goal is not None and m.name == goal.name), None)
    swept = None if metric is None else (options.sweep, metric)
    write_results(plan.folder, table, records, command, swept, origin_of(plan))
    if options.json is not None:
        write_json(options.json, table.to_dict())
    print(f"\n{terminal_text(table, records)}\n\nFiles     {plan.folder}")
    _warn_of_absent(options, table, records)


def _warn_of_absent(options: Options, table: AblationTable, records: Sequence[Record]) -> None:
    """A metric that was asked for, and that no fit has, is told: it may be misspelled."""
    shown = {metric.name for metric in table.metrics}
    absent = [metric.name for metric in options.asked() if metric.name not in shown]
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


def _cell_lines(plan: Plan, options: Options) -> list[str]:
    lines = []
    for planned in plan.cells:
        mark = "refused" if planned.refusal else "baseline" if planned.cell.name == plan.baseline else "cell"
        lines.append(f"{mark:<9} {planned.cell.name}{f': {planned.refusal}' if planned.refusal else ''}")
    lines += [f"note      {text}" for text in silent_differences(plan)]
    n_done = sum(RunFolder(fit.folder).is_complete for fit in plan.fits)
    done = f", {n_done} of them finished" if n_done else ""
    if options.sweep:
        n_all = (1 + options.n_trials) * len(plan.seeds)
        trials = f"{options.n_trials} beside the default, so {n_all} fits, with seeds {', '.join(map(str, plan.seeds))}"
        return [*lines, f"trials    {trials}"]
    return [*lines, f"fits      {len(plan.fits)}, with seeds {', '.join(map(str, plan.seeds))}{done}"]


def _warn_of_baseline(options: Options, plan: Plan) -> None:
    warning = other_baseline(options, plan.cells, plan.baseline)
    if warning is not None:
        print(f"warning: {warning}", file=sys.stderr)


def _exit_status(records: Sequence[Record], folder: Path) -> int:
    statuses = [record.status for record in records]
    failed = [record for record in records if record.status == "error"]
    for record in failed:
        log = folder / f"{record.run}.log"
        print(f"warning: {record.cell}, seed {record.seed}: {record.reason}; see {log}", file=sys.stderr)
    return FAILED_FIT if failed or "ok" not in statuses else 0


COMMAND = Command(
    "ablate",
    Options,
    run,
    usage="(--dataset NAME | --data FILE --nodes NODES) --vary FLAG=A,B [--vary ...] --seeds 10 --output_dir FOLDER",
)


def parse(argv: Sequence[str]) -> Options:
    """Parse a command line, whose flags are in part those of `inference.svi`.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    own, common = split_words(argv)
    return dataclasses.replace(COMMAND.parse(own, common), common=tuple(common), typed=tuple(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("ablate", lambda words: run(parse(words)), argv)


if __name__ == "__main__":
    sys.exit(main())
