"""From exceptions to exit statuses."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from causalpima.inference.command_line.parsing import run_command


def failing(error: BaseException) -> Callable[[Sequence[str]], int]:
    def command(argv: Sequence[str]) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("seed: expected\n  a number"), "seed: expected a number"),
        (FileNotFoundError(2, "No such file", "x.nc"), "[Errno 2] No such file: 'x.nc'"),
        (ValueError(), "ValueError"),
        (MemoryError(), "out of memory; use fewer samples, a smaller batch or smaller networks"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried"), "out of memory; use fewer samples, a smaller batch or"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), "out of memory; use fewer samples"),
    ],
)
def test_bad_input_is_one_line_and_2(error: Exception, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("svi", failing(error), []) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"svi: error: {line}")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("error", [TypeError("bug"), RuntimeError("shapes do not match"), AssertionError()])
def test_bugs_keep_their_traceback(error: Exception) -> None:
    with pytest.raises(type(error)):
        run_command("svi", failing(error), [])


def test_memory_that_is_really_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("svi", lambda argv: len(torch.empty(2**45)), []) == 2
    assert capsys.readouterr().err.startswith("svi: error: out of memory; use fewer samples")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(number: int, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    def command(argv: Sequence[str]) -> int:
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note("go on with --resume")
            raise
        return 0

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert run_command("svi", command, []) == status
    signal.signal(signal.SIGINT, before[signal.SIGINT])
    assert capsys.readouterr().err == "svi: interrupted; go on with --resume\n"
    assert signal.getsignal(signal.SIGTERM) == before[signal.SIGTERM]


def test_the_status_of_the_command_is_passed_on() -> None:
    assert run_command("svi", len, ["a", "b", "c"]) == 3


def test_a_reader_that_went_away_is_told_by_the_status(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As of programs that the signal ends: `set -o pipefail` sees that not all was done."""
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert run_command("svi", failing(BrokenPipeError()), []) == 141
        print("to nobody", flush=True)
    assert (tmp_path / "out").read_text() == ""
