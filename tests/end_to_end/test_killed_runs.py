"""Runs that are killed, interrupted, or find their checkpoints damaged, and go on to the same end."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import TINY, contents, differences, exit_status, fork, svi

pytestmark = [
    pytest.mark.usefixtures("without_figures"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork"),  # the copies only run the command and exit
]

_WRITING = ("fsync", "replace", "rename", "mkdir", "rmdir")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert svi(*TINY, "--output_dir", folder).status == 0
    return folder


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A run with checkpoints of epochs 2 and 3 of 4."""
    folder = tmp_path / "run"
    assert svi(*TINY, "--output_dir", folder, "--stop_after", 3).status == 0
    return folder


def kill_at(step: int) -> None:
    """Have this process kill itself before the given step of writing."""
    left = [step]

    def counted(name: str) -> None:
        original: Callable[..., object] = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(os, name, call)

    for name in _WRITING:
        counted(name)


def is_run(folder: Path) -> bool:
    return (folder / "config.yaml").exists()


@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_between_any_two_steps_of_writing(
    uninterrupted: Path, tmp_path: Path, seed: int
) -> None:
    folder, steps = tmp_path / "run", random.Random(seed)
    statuses: list[int] = []
    while not statuses or statuses[-1] != 0:
        assert len(statuses) < 40, "no progress"
        arguments = ["--resume", str(folder)] if is_run(folder) else [*TINY, "--output_dir", str(folder), "--force"]
        step = steps.randrange(1, 40)
        statuses.append(exit_status(fork(arguments, tmp_path / "err", partial(kill_at, step))))
        assert statuses[-1] in (0, -signal.SIGKILL), (tmp_path / "err").read_text()
    assert len(statuses) > 3
    assert differences(contents(uninterrupted), contents(folder)) == []
    assert [path.name for path in folder.rglob(".*")] == [], "leftovers of the killed are cleared"


def test_killed_while_finishing(uninterrupted: Path, stopped: Path, tmp_path: Path) -> None:
    def kill_at_the_summary() -> None:
        from causalpima.inference.store.run_folder import RunFolder

        RunFolder.write_summary = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]

    child = fork(["--resume", str(stopped)], tmp_path / "err", kill_at_the_summary)
    assert exit_status(child) == -signal.SIGKILL
    assert (stopped / ".changes" / "posterior.nc").exists(), "written beside"
    assert not (stopped / "posterior.nc").exists(), "nothing is in place before all of it"
    assert svi("--resume", stopped).status == 0
    assert differences(contents(uninterrupted), contents(stopped)) == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_signal_in_the_middle(uninterrupted: Path, tmp_path: Path, number: signal.Signals, status: int) -> None:
    def wait_after_the_first_epoch() -> None:
        from causalpima.inference import run

        save = run.save_checkpoint

        def save_and_wait(folder: Path, epoch: int, *more: Any) -> Path:
            path = save(folder, epoch, *more)
            time.sleep(60 if epoch == 1 else 0)
            return path

        run.save_checkpoint = save_and_wait  # type: ignore[assignment]

    folder, errors = tmp_path / "run", tmp_path / "err"
    child = fork([*TINY, "--output_dir", str(folder)], errors, wait_after_the_first_epoch)
    while not (folder / "checkpoint" / "epoch-000001").exists():
        time.sleep(0.005)
    os.kill(child, number)
    assert exit_status(child) == status
    if number != signal.SIGKILL:
        said = errors.read_text()
        assert said.count("\n") == 1
        assert (
            f"interrupted; every finished epoch is saved; go on with: python -m inference.svi --resume {folder}" in said
        )
    assert svi("--resume", folder).status == 0
    assert differences(contents(uninterrupted), contents(folder)) == []


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _fill_with_garbage(file: Path) -> None:
    file.write_bytes(b"\x00garbage" * 10)


@pytest.mark.parametrize("damage", [_truncate, _fill_with_garbage, Path.unlink])
@pytest.mark.parametrize("file", ["weights.safetensors", "state.pt", "manifest.json"])
def test_the_older_checkpoint_serves_where_the_newest_is_damaged(
    uninterrupted: Path, stopped: Path, file: str, damage: Callable[[Path], None]
) -> None:
    damage(stopped / "checkpoint" / "epoch-000003" / file)
    outcome = svi("--resume", stopped, "--stop_after", 0)
    assert outcome.status == 0
    assert outcome.err.startswith("warning: damaged: epoch-000003 (")
    assert outcome.err.endswith("going on from epoch-000002 instead\n")
    if file == "state.pt":
        assert svi("--resume", stopped).status == 0
        assert differences(contents(uninterrupted), contents(stopped)) == []


def test_all_checkpoints_are_damaged(stopped: Path) -> None:
    for path in stopped.glob("checkpoint/epoch-*/state.pt"):
        _truncate(path)
    outcome = svi("--resume", stopped)
    assert outcome.status == 2
    assert outcome.err.startswith(f"svi: error: no checkpoint in {stopped / 'checkpoint'} is whole: epoch-000003 (")
    assert outcome.err.count("\n") == 1


def test_killed_before_the_first_checkpoint(uninterrupted: Path, tmp_path: Path) -> None:
    def kill_at_the_first_checkpoint() -> None:
        from causalpima.inference import run

        run.save_checkpoint = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]

    folder = tmp_path / "run"
    child = fork([*TINY, "--output_dir", str(folder)], tmp_path / "err", kill_at_the_first_checkpoint)
    assert exit_status(child) == -signal.SIGKILL
    outcome = svi("--resume", folder)
    assert outcome.status == 0
    assert "was stopped before its first checkpoint; starting from the beginning" in outcome.err
    assert differences(contents(uninterrupted), contents(folder)) == []


def test_checkpoints_that_someone_removed(stopped: Path) -> None:
    for path in stopped.glob("checkpoint/*/*"):
        path.unlink()
    for path in stopped.glob("checkpoint/*"):
        path.rmdir()
    outcome = svi("--resume", stopped)
    assert outcome.status == 2
    assert "expected a checkpoint epoch-NNNNNN" in outcome.err
