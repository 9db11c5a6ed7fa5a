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

__all__ = ["time_line"]


def time_line(plan: Plan, arguments: Arguments) -> str:
    """One line on the time of the fits that are unfinished."""
    waiting = [fit for fit in plan.fits if not RunFolder(fit.folder).is_complete]
    counts = Counter(fit.cell for fit in waiting)
    words = {fit.cell: fit.words for fit in waiting}
    spent = sum(count * _seconds(words[cell]) for cell, count in counts.items()) / max(1, arguments.jobs)
    minutes = max(1, math.ceil(spent / 60))
    return (
        f"time      about {minutes} min of training for {len(waiting)} fits, {arguments.jobs} at once; start, read-out "
        "and figures of each come on top"
    )


def _seconds(words: tuple[str, ...]) -> float:
    """Of one fit of a cell, all its starts together; one thread, as in the processes of the fits."""
    arguments = parse_fit(words)
    torch.set_num_threads(arguments.threads)
    return arguments.restarts * training_seconds(Run(arguments.make_data(), arguments.config, arguments.device))
