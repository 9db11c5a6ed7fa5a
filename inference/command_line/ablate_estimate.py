"""How long an ablation will take, from a few steps of every cell."""

from __future__ import annotations

import math
from collections import Counter

import torch

from inference.ablation.plan import Plan
from inference.command_line.ablate_arguments import Arguments
from inference.command_line.ablate_refusals import cannot_begin
from inference.command_line.dry_run import training_seconds
from inference.command_line.svi_arguments import parse as parse_fit
from inference.results.run_folder import RunFolder
from inference.training.run import Run

__all__ = ["time_lines"]

_SECONDS_ARE_SHOWN = 120
_ON_TOP = (
    "          start of the program, read-out, figures and scores of each fit come on top, and are most of the time of "
    "short fits; after the first fit the time that is left is told with them"
)


def time_lines(plan: Plan, arguments: Arguments) -> list[str]:
    """How long the fits that are unfinished train, and what comes on top; nothing where all are finished.

    Raises:
        ValueError: Data or code of the user's own do not suit a cell, which is named.
    """
    waiting = _waiting(plan, arguments)
    n_waiting = waiting.total()
    if not n_waiting:
        return []
    words = {fit.cell: fit.words for fit in plan.fits}
    spent = sum(count * _seconds_of(cell, words[cell], arguments) for cell, count in waiting.items()) / arguments.jobs
    n_fits = "1 fit" if n_waiting == 1 else f"{n_waiting} fits"
    return [f"time      about {_duration(spent)} of training for {n_fits}, {arguments.jobs} at once", _ON_TOP]


def _waiting(plan: Plan, arguments: Arguments) -> Counter[str]:
    """Unfinished fits of each cell; trials of a sweep count as the default, since their settings are not known yet."""
    if not arguments.sweep:
        return Counter(fit.cell for fit in plan.fits if not RunFolder(fit.folder).is_complete)
    n_done = sum(RunFolder(path).is_complete for path in (plan.folder / "runs").glob("*/seed-*") if path.is_dir())
    return Counter({plan.baseline: max(0, (1 + arguments.trials) * len(plan.seeds) - n_done)})


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < _SECONDS_ARE_SHOWN else f"{math.ceil(seconds / 60)} min"


def _seconds_of(cell: str, words: tuple[str, ...], arguments: Arguments) -> float:
    try:
        return _seconds(words)
    except ValueError as error:
        raise cannot_begin(arguments, cell, error) from error


def _seconds(words: tuple[str, ...]) -> float:
    """Of one fit of a cell, all its starts together; one thread, as in the processes of the fits."""
    arguments = parse_fit(words)
    torch.set_num_threads(arguments.threads)
    return arguments.restarts * training_seconds(Run(arguments.make_data(), arguments.config, arguments.device))
