"""How long an ablation will take, from a few steps of every cell."""

from __future__ import annotations

import math
from collections import Counter

import torch

from inference.ablation.plan import Plan
from inference.command_line.ablate_arguments import Arguments
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
    """How long the fits that are unfinished train, and what comes on top; nothing where all are finished."""
    waiting = [fit for fit in plan.fits if not RunFolder(fit.folder).is_complete]
    counts = Counter(fit.cell for fit in waiting)
    words = {fit.cell: fit.words for fit in waiting}
    if not waiting:
        return []
    spent = sum(count * _seconds(words[cell]) for cell, count in counts.items()) / max(1, arguments.jobs)
    n_fits = "1 fit" if len(waiting) == 1 else f"{len(waiting)} fits"
    return [f"time      about {_duration(spent)} of training for {n_fits}, {arguments.jobs} at once", _ON_TOP]


def _duration(seconds: float) -> str:
    return f"{math.ceil(seconds)} s" if seconds < _SECONDS_ARE_SHOWN else f"{math.ceil(seconds / 60)} min"


def _seconds(words: tuple[str, ...]) -> float:
    """Of one fit of a cell, all its starts together; one thread, as in the processes of the fits."""
    arguments = parse_fit(words)
    torch.set_num_threads(arguments.threads)
    return arguments.restarts * training_seconds(Run(arguments.make_data(), arguments.config, arguments.device))
