"""`python -m inference.svi`: fit causalPIMA to a data set and leave a run folder.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the fit failed (diverged or collapsed), 130 Ctrl-C,
143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from causalpima.inference.command_line.parsing import ALLOW_CODE, FAILED_FIT, run_command
from causalpima.inference.command_line.run_data import describe, naming_source, reading_table, settings_of_run
from causalpima.inference.command_line.svi_parser import Arguments, given_flags, parse
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.restarts import RestartedRun
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.files import OutputError, write_json
from causalpima.inference.store.run_folder import RunFolder, claim_run_folder, next_run_folder
from causalpima.inference.training.user_code import remember_code
from causalpima.models.user_code import on_word_of_files

__all__ = [
    "command",
    "dry_run",
    "main",
    "resume",
    "start",
    "typed_code",
]


# What `python -m inference.svi` does with its arguments: a new run, a resumed one, or a dry run.


@contextmanager
def typed_code(argv: Sequence[str]) -> Iterator[None]:
    """Meanwhile code that the command line names is imported, and what `--config` or `--resume` name only if allowed.

    Args:
        argv: The command line.
    """
    words = [part for word in argv for part in (word, word.partition("=")[2])]
    typed = {word.partition(":")[0] for word in words if ":" in word and not word.startswith("--")}
    if {"config", "resume"} & given_flags(argv):
        with on_word_of_files(ALLOW_CODE in argv, typed):
            yield
    else:
        yield


def start(arguments: Arguments) -> int:
    """Train, finish, write the run folder, print the table; returns the exit status.

    Raises:
        ValueError: Input that cannot be used; nothing is left behind.
    """
    _check_output(arguments)
    run = _prepare(arguments)
    if arguments.restarts > 1:
        arguments = dataclasses.replace(arguments, restart_mode=arguments.plan.resolved(run).mode)
    folder = RunFolder(arguments.output_dir) if arguments.output_dir else claim_run_folder(arguments.name)
    kept = folder.create(arguments.to_config(), arguments.force)
    remember_code(arguments.config.to_dict())
    if kept:
        _warn(f"kept in {folder.path}, since no run writes it: {', '.join(kept)}")
    with folder.in_use():
        if arguments.file is not None:
            print(f"{reading_table(run)}\n", flush=True)
        return _train_and_finish(run, arguments, folder)


def resume(arguments: Arguments, argv: Sequence[str]) -> int:
    """Go on with a run, with the settings that it was started with; of a complete run, only show its table.

    Raises:
        ValueError: The folder holds no run that can be resumed.
    """
    folder = RunFolder(arguments.resume or "")
    started = _started(folder, arguments, given_flags(argv))
    with folder.in_use():
        if folder.is_complete:
            summary = folder.read_summary()
            print(f"{folder.path} is complete; nothing was done")
            return _show(summary, started, folder)
        run = _prepare(started)
        with naming_source(started):
            if started.restarts == 1:
                _restore(run, folder)
            return _train_and_finish(run, started, folder)


def dry_run(arguments: Arguments) -> int:
    """Print shapes, parameters, memory and a time estimate; nothing is written."""
    _check_output(arguments)
    run = _prepare(arguments)
    table = [reading_table(run), ""] if arguments.file is not None else []
    print("\n".join([*table, describe(run, arguments.output_dir or str(next_run_folder(arguments.name)))]))
    return 0


def _started(folder: RunFolder, arguments: Arguments, given: set[str]) -> Arguments:
    """The arguments that a run was started with, and those of now that change nothing about it."""
    started = settings_of_run(folder)
    now = ("resume", "stop_after", "quiet", "json", *({"device", "jobs"} & given))
    return dataclasses.replace(started, **{name: getattr(arguments, name) for name in now})


def _restore(run: Run, folder: RunFolder) -> None:
    if not folder.metrics.exists() and not any(folder.checkpoints.glob("epoch-*")):
        _warn(f"{folder.path} was stopped before its first checkpoint; starting from the beginning")
        return
    checkpoint = run.restore(folder)
    if checkpoint.warning is not None:
        _warn(checkpoint.warning)


def _prepare(arguments: Arguments) -> Run:
    torch.set_num_threads(arguments.threads)
    return Run(arguments.make_data(), arguments.config, arguments.device)


def _train_and_finish(run: Run, arguments: Arguments, folder: RunFolder) -> int:
    shown = not arguments.quiet and sys.stderr.isatty()
    with _saying_how_to_go_on(folder):
        train = _train if arguments.restarts == 1 else _train_starts
        result = train(run, arguments, folder, shown)
        if result is None:
            return 0
        result.write(folder)
    return _show(result.summary, arguments, folder)


def _train(run: Run, arguments: Arguments, folder: RunFolder, shown: bool) -> FitResult | None:
    run.train(arguments.stop_after, folder, progress=shown)
    if run.is_finished:
        return run.finish()
    print(f"stopped after epoch {run.state.epoch} of {run.config.total_epochs}; {_how_to_go_on(folder)}")
    return None


def _train_starts(first: Run, arguments: Arguments, folder: RunFolder, shown: bool) -> FitResult | None:
    run = RestartedRun(first, arguments.plan, folder)
    run.train(arguments.stop_after, progress=shown)
    if run.is_finished:
        return run.finish()
    epochs = f"epoch {arguments.stop_after} of {first.config.total_epochs}"
    print(f"stopped every start after {epochs}; {_how_to_go_on(folder)}")
    return None


def _show(summary: Mapping[str, Any], arguments: Arguments, folder: RunFolder) -> int:
    if arguments.json is not None:
        write_json(arguments.json, summary)
    print(_table(summary, folder))
    return 0 if summary["status"] == "ok" else FAILED_FIT


def _table(summary: Mapping[str, Any], folder: RunFolder) -> str:
    try:
        return summary_table({**summary, "output_dir": str(folder.path)})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{folder.summary}: expected the summary of a run, got something else; remove it, "
            "and --resume writes it again"
        ) from error


@contextmanager
def _saying_how_to_go_on(folder: RunFolder) -> Iterator[None]:
    """What stops a run without fault of its own: Ctrl-C, and a disk that is full."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"every finished epoch is saved; {_how_to_go_on(folder)}")
        raise
    except OutputError as error:
        raise OutputError(f"{error}; then {_how_to_go_on(folder)}") from error


def _how_to_go_on(folder: RunFolder) -> str:
    return f"go on with: python -m inference.svi --resume {shlex.quote(str(folder.path))}"


def _check_output(arguments: Arguments) -> None:
    """Refuse places that can't be written to now, not after the hour of training."""
    folder = RunFolder(arguments.output_dir) if arguments.output_dir else None
    if folder is not None:
        folder.check(arguments.force)
    else:
        RunFolder(next_run_folder(arguments.name)).check()


def _warn(message: str) -> None:
    print(f"warning: {message}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("svi", command, argv)


def command(argv: Sequence[str]) -> int:
    """The same, with exceptions where input or machine were not up to it."""
    with typed_code(argv):
        arguments = parse(argv)
        if arguments.resume is not None:
            return resume(arguments, argv)
        return dry_run(arguments) if arguments.dry_run else start(arguments)


if __name__ == "__main__":
    sys.exit(main())
