"""Starts as one computation, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from inference.results.files import make_folder, remove_folder
from inference.results.run_folder import RunFolder
from inference.training.batched.train import train_batched
from inference.training.restarts.start import Starts, keep
from inference.training.run import Run

__all__ = ["run_batched"]


def run_batched(
    starts: Starts,
    numbers: Sequence[int],
    until: int | None,
    stepped: Callable[[int], None],
    warned: Callable[[str], object],
) -> None:
    """Train starts together, with a checkpoint of each after every epoch, and keep what they found if all end.

    None is kept before all have ended: one that goes on alone would round its sums otherwise.

    Args:
        starts: Data, configuration and folder.
        numbers: Which starts.
        until: Number of finished epochs at which to stop; None: all that are planned.
        stepped: Called with the number of starts that took a step.
        warned: Called with what the user should know.

    Raises:
        OutputError: The disk is full, or another process is at one of them.
        CheckpointError: See `Starts.go_on`.
    """
    folders = [starts.folder(number) for number in numbers]
    with ExitStack() as stack:
        for folder in folders:
            make_folder(folder.path)
            stack.enter_context(folder.in_use())
            folder.remove_partials()
        _to_one_epoch(folders)
        runs = [_go_on(starts, number, warned) for number in numbers]
        train_batched(runs, folders, until, stepped)
        if all(run.is_finished for run in runs):
            for run, folder in zip(runs, folders, strict=True):
                keep(run.finish(), folder)


def _to_one_epoch(folders: Sequence[RunFolder]) -> None:
    """Undo the newest epoch where a kill left some starts with its checkpoint and others without.

    The others would catch up without their company, and round sums otherwise than together. Every start keeps two
    checkpoints. Starts that are further behind dropped out earlier.
    """
    newest = [max(_epochs(folder), default=0) for folder in folders]
    last = max(newest)
    if last - 1 in newest:
        for folder in folders:
            remove_folder(folder.checkpoints / f"epoch-{last:06d}")


def _epochs(folder: RunFolder) -> list[int]:
    names = [path.name.removeprefix("epoch-") for path in folder.checkpoints.glob("epoch-*")]
    return [int(name) for name in names if name.isdigit()]


def _go_on(starts: Starts, number: int, warned: Callable[[str], object]) -> Run:
    run, warning = starts.go_on(number)
    if warning is not None:
        warned(f"restart {number}: {warning}")
    return run
