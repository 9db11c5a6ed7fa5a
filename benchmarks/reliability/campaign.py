"""What the reliability campaigns share: running a command as a user does, and counting what was tried and what held."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["ROOT", "Case", "Outcome", "campaign_parser", "forked", "report", "run"]

ROOT = Path(__file__).parents[2]
_WRONG_INPUT = 2


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes:
        status: Exit status; negative: killed by that signal, None: still running after the time limit.
        out: Standard output.
        err: Standard error.
    """

    status: int | None
    out: str
    err: str

    @property
    def is_refusal(self) -> bool:
        """Whether the input was refused as promised: exit status 2 and one line on standard error that is an error."""
        lines = [line for line in self.err.splitlines() if line.strip() and not line.startswith("note:")]
        return self.status == _WRONG_INPUT and len(lines) == 1 and ": error: " in lines[0]

    @property
    def is_traceback(self) -> bool:
        """Whether the program broke."""
        return "Traceback (most recent call last)" in self.err

    def __str__(self) -> str:
        last = self.err.strip().splitlines()[-1:] or ["nothing on standard error"]
        return f"status {self.status}; {last[0][:300]}"


@dataclass(frozen=True)
class Case:
    """One thing that was tried.

    Attributes:
        kind: What sort of fault was made, for the counts.
        name: What was tried, enough to repeat it.
        held: Whether the program did what it promises.
        found: What it did, where that says why.
    """

    kind: str
    name: str
    held: bool
    found: str = ""


def run(words: Sequence[str | Path], cwd: Path, seconds: float = 120.0) -> Outcome:
    """Run `python -m WORDS...` with this checkout's code in a folder, with one thread.

    Args:
        words: The module and its arguments.
        cwd: The working directory.
        seconds: Time limit.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", *map(str, words)]
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return Outcome(None, "", f"still running after {late.timeout:g} s")
    return Outcome(done.returncode, done.stdout, done.stderr)


def forked(
    action: Callable[[], int], folder: Path, seconds: float = 60.0, kill: tuple[float, int] | None = None
) -> Outcome:
    """Run something in a forked child, which has the imports behind it, in a folder.

    Args:
        action: Returns the exit status.
        folder: Where it works.
        seconds: Time limit.
        kill: After how many seconds it gets which signal.
    """
    place = Path(tempfile.mkdtemp(prefix="forked-"))
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes ignore it
            os.chdir(folder)
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT), number)
            sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))  # noqa: SIM115
            status = action()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
    ended = _waited(child, seconds, kill)
    out, err = (
        (place / name).read_text(errors="replace") if (place / name).exists() else "" for name in ("out", "err")
    )
    shutil.rmtree(place)
    return Outcome(ended, out, err)


def _waited(child: int, seconds: float, kill: tuple[float, int] | None) -> int | None:
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if kill is not None and time.monotonic() > start + kill[0]:
            os.kill(child, kill[1])
            kill = None
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)  # it began a session, and may have begun others
    os.waitpid(child, 0)
    return None


def campaign_parser(description: str | None) -> argparse.ArgumentParser:
    """The flags that every campaign has: `--seed` and `--json`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help="Seed of the faults (default 0).")
    parser.add_argument("--json", type=Path, help="Write every case to this file, too.")
    return parser


def report(campaign: str, cases: Iterable[Case], seed: int, path: Path | None = None) -> int:
    """Print how many cases of each kind were tried and held, and each that did not; 1 if there is one, else 0."""
    tried = []
    try:
        for case in cases:
            tried.append(case)
            if not case.held:
                print(f"  NOT HELD  {case.kind}: {case.name}: {case.found}", file=sys.stderr, flush=True)
    finally:  # what was tried counts, also if somebody stops it
        status = _told(campaign, tried, seed, path)
    return status


def _told(campaign: str, tried: list[Case], seed: int, path: Path | None) -> int:
    kinds, held = Counter(case.kind for case in tried), Counter(case.kind for case in tried if case.held)
    width = max(map(len, [*kinds, "all"]))
    print(f"{campaign}, seed {seed}, Python {platform.python_version()}, {os.cpu_count()} cores")
    for kind, count in [*kinds.items(), ("all", len(tried))]:
        print(f"  {kind:<{width}}  tried {count:>5}  held {held.total() if kind == 'all' else held[kind]:>5}")
    for case in tried:
        if not case.held:
            print(f"  NOT HELD  {case.kind}: {case.name}: {case.found}")
    if path is not None:
        path.write_text(json.dumps({"campaign": campaign, "seed": seed, "cases": [asdict(c) for c in tried]}, indent=1))
    return int(held.total() < len(tried))
