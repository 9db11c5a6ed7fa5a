"""A sweep: trials are proposed, run with all seeds, and told how good they were."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from inference.ablation.best_trial import best_words, is_better
from inference.ablation.plan import Plan
from inference.ablation.records import Record
from inference.ablation.sweep import DEFAULT, Sweep, cell_name
from inference.command_line.ablate_arguments import Arguments
from inference.command_line.ablate_fits import Fits
from inference.command_line.ablate_plan import check_unchanged, plan_of_cells
from inference.results.files import write_json

__all__ = ["sweep_plan"]


def sweep_plan(first: Plan, arguments: Arguments, fits: Fits) -> tuple[Plan, tuple[Record, ...]]:
    """Run the trials of a sweep; returns the plan with all of them beside the default, and the records of its fits.

    Args:
        first: The plan of the default.
        arguments: Ranges, metric, number of trials and seeds.
        fits: Runs the fits.
    """
    assert arguments.metric is not None
    sweep = Sweep(first.folder / "sweep.log", arguments.sweep, arguments.metric, arguments.seeds)
    plan = plan_of_cells(arguments, sweep.cells())
    check_unchanged(plan)
    while sweep.n_ended < arguments.trials and not arguments.table_only:
        at_once = math.ceil(arguments.jobs / len(arguments.seeds))
        numbers = sweep.propose(min(at_once, arguments.trials - sweep.n_ended))
        plan = plan_of_cells(arguments, sweep.cells())
        records = fits.run(plan)
        for number in numbers:
            sweep.tell(number, _value(cell_name(number), records, arguments))
    records = fits.run(plan)
    _tell_best(sweep, plan, _value(DEFAULT, records, arguments))
    return plan, records


def _value(cell: str, records: Sequence[Record], arguments: Arguments) -> float | None:
    """Mean over the seeds; None where a seed has no number."""
    assert arguments.metric is not None
    values = [record.metrics.get(arguments.metric.name) for record in records if record.cell == cell]
    found = [value for value in values if value is not None]
    return statistics.fmean(found) if len(found) == len(arguments.seeds) else None


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
