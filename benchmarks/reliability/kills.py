"""Every command that writes, killed and interrupted: is the folder as before or complete, and is the end the same?

    python benchmarks/reliability/kills.py --json kills.json
    python benchmarks/reliability/kills.py --only name --cases 20

Each command runs in a forked child on copies of small runs. It is killed (SIGKILL) or interrupted (SIGINT) before the
k-th call that changes a folder (fsync, replace, rename, link, unlink, mkdir, rmdir; k is seeded, from 1 to all of
them), or at a seeded moment. Held: an interrupt is one line and status 130; no file that was there is lost, and none
is half written; then the same command again, or `--resume` of a fit, leaves what an undisturbed one leaves, bit for
bit but for the seconds that things took, and nothing unfinished.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Case, Outcome, campaign_parser, forked, report
from example_commands import COMMANDS, FIT, imported, make_files, quicker

PATIENCE = 300.0
WRITING = ("fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir")

_FIT = ("svi", "--data", "data.nc", "--nodes", "2", *FIT, "--output_dir", "new")


@dataclass(frozen=True)
class Work:
    """A command that writes, and how it goes on after a kill.

    Attributes:
        name: Of the command, for the counts.
        words: Module and arguments.
        again: What goes on with it; default the same words.
        cases: Share of the kills.
    """

    name: str
    words: tuple[str, ...]
    again: Callable[[Path], tuple[str, ...]] | None = None
    cases: int = 8


def _resumed(words: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    return ("svi", "--resume", "new", "--quiet") if (folder / "new" / "config.yaml").exists() else (*words, "--force")


WORKS = (
    Work("svi", _FIT, partial(_resumed, _FIT), 12),
    Work("svi --force", (*_FIT[:-1], "copy", "--force"), None, 8),
    Work("svi --resume", ("svi", "--resume", "stopped", "--quiet", "--json", "s.json"), None, 12),
    Work(
        "restarts",
        (*_FIT, "--restarts", "2", "--jobs", "1"),
        lambda folder: _resumed((*_FIT, "--restarts", "2", "--jobs", "1"), folder),
        10,
    ),
    Work("prepare", ("prepare", "samples.csv", "--output", "made.nc", "--json", "made.json")),
    Work("predict", ("predict", "run", "--data", "new.nc", "--output", "found.nc", "--draws", "2", "--json", "p.json")),
    Work("name", ("name", "copy")),
    Work("name --names", ("name", "copy", "--names", "names.csv"), None, 14),
    Work("name --output_dir", ("name", "copy", "--names", "names.csv", "--output_dir", "new"), None, 8),
    Work("name --remove", ("name", "named", "--remove"), None, 10),
    Work("mcmc", (*("mcmc", *COMMANDS["mcmc"][0]), "--json", "m.json")),
    Work("graph", ("graph", "--data", "table.csv", "--json", "g.json", "--figures", "drawn")),
    Work("evaluate", ("evaluate", "run", "--json", "e.json", "--figures", "drawn")),
    Work("check", ("check", "run", "--repetitions", "1")),
    Work("diagnose", ("diagnose", "run", "--json", "d.json")),
    Work(
        "query",
        (
            "query",
            "named",
            "--do",
            "N1=first",
            "--draws",
            "4",
            "--json",
            "q.json",
            "--output",
            "q.nc",
            "--figures",
            "drawn",
        ),
    ),
    Work("report", ("report", "run")),
    Work("export", ("export", "run", "--as_labelled", "--output", "g.graphml")),
    Work("identify", ("identify", "--nodes", "2,2", "--json", "i.json")),
    Work("explore", ("explore", *COMMANDS["explore"][0][:-1], "cells.png", "--json", "x.json")),
    Work(
        "ablate",
        (
            "ablate",
            "--data",
            "data.nc",
            "--nodes",
            "2",
            *FIT[:-1],
            "--arms",
            "arms.yaml",
            "--seeds",
            "1",
            "--metrics",
            "entropy",
            "--output_dir",
            "new",
            "--quiet",
        ),
        None,
        4,
    ),
)


# ------------------------------------------------------------------------------------------------------- what is left


def left(folder: Path) -> dict[str, Any]:
    """Files below a folder, and what they hold without the times that things took."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _content(path) for path in files}


_KNOWN: dict[tuple[str, bytes], str] = {}
"""By name and hash: most files are the same in every copy."""


def _content(path: Path) -> str:
    raw = path.read_bytes()
    key = path.name, hashlib.sha256(raw).digest()
    if key not in _KNOWN:
        _KNOWN[key] = _without_times(path, raw)
    return _KNOWN[key]


def _without_times(path: Path, raw: bytes) -> str:
    if path.suffix in (".json", ".jsonl"):
        lines = raw.decode().splitlines() if path.suffix == ".jsonl" else [raw.decode()]
        return repr([_timeless(json.loads(line)) for line in lines])
    if path.suffix == ".log":
        return ""  # of a process that went on, it says so
    if path.suffix == ".nc":
        return _arrays(path)
    if path.name == "state.pt":
        return _state(path)
    if path.suffix in (".html", ".csv", ".md"):
        # Seconds are written in many forms; of starts that went on, their sum takes the place of the wall time.
        return re.sub(r"\d+(\.\d+)? ?s(econds)?\b( wall time of all| summed over)?|\d+\.\d+", "", raw.decode())
    return hashlib.sha256(raw).hexdigest()


_TIMES = re.compile(r"seconds|_s$|created|started|ended|command|sha256|digest|checksums")


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if not _TIMES.search(str(key))}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


def _arrays(path: Path) -> str:
    import h5py

    found: dict[str, Any] = {}

    def take(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and "seconds" not in name:
            found[name] = (
                hashlib.sha256(np.asarray(item).tobytes()).hexdigest()
                if item.dtype.kind != "O"
                else repr(item[()].tolist())
            )

    with h5py.File(path) as file:
        file.visititems(take)
    return repr(found)


def _state(path: Path) -> str:
    import torch

    return repr(_timeless(torch.load(path, weights_only=True)))


def unfinished(folder: Path) -> list[str]:
    """What only a command that is at work should have."""
    forms = (r"\..*\.partial", r"\.changes$", r".*-replaced$", r"\..*")
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if any(re.match(form, path.name) for form in forms)
    )


# ------------------------------------------------------------------------------------------------------------ killing


def _counted(step: int, number: int) -> Callable[[], int]:
    """Send this process a signal before the given call that changes a folder; returns how many there were."""
    done = [0]

    def wrap(name: str) -> None:
        original: Callable[..., object] = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            done[0] += 1
            if done[0] == step:
                os.kill(os.getpid(), number)
            return original(*args, **kwargs)

        setattr(os, name, call)

    for name in WRITING:
        wrap(name)
    return lambda: done[0]


def _action(words: Sequence[str], step: int = 0, number: int = 0, counts: Path | None = None) -> int:
    count = _counted(step, number) if step or counts else None
    status = imported(words[0])(list(words[1:]))
    if counts is not None and count is not None:
        counts.write_text(str(count()))
    return status


@dataclass(frozen=True)
class Undisturbed:
    """A command that nobody disturbed.

    Attributes:
        before: What was there.
        after: What it leaves.
        steps: Calls that change folders.
        seconds: How long it takes.
        status: Exit status.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    steps: int
    seconds: float
    status: int | None


def undisturbed(work: Work, original: Path, home: Path) -> Undisturbed:
    """Run a command in a copy of the files.

    Raises:
        RuntimeError: It does not work.
    """
    folder = copied(original, home)
    start = time.monotonic()
    outcome = forked(lambda: _action(work.words, 0, 0, home / "count"), folder, PATIENCE)
    if outcome.status not in (0, 3):
        raise RuntimeError(f"{' '.join(work.words)}: {outcome}")
    return Undisturbed(
        left(original), left(folder), int((home / "count").read_text()), time.monotonic() - start, outcome.status
    )


def copied(original: Path, home: Path) -> Path:
    """A copy of the files to work on, in place of the last one."""
    folder = home / "work"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder, symlinks=True)
    return folder


def killed(
    work: Work, whole: Undisturbed, original: Path, home: Path, number: signal.Signals, step: int, moment: float
) -> Case:
    """Kill a command once, judge what is left, do it again, and judge the end.

    Args:
        work: The command.
        whole: What it does undisturbed.
        original: The files.
        home: A folder for copies of them.
        number: The signal.
        step: Before which call that changes a folder it comes; 0: at a moment.
        moment: That moment, as a share of the time that the command takes.
    """
    folder = copied(original, home)
    when = f"before call {step} of {whole.steps}" if step else f"after {moment:.2f} of its time"
    name = f"{number.name} {when}: {' '.join(work.words)}"
    timed = None if step else (moment * whole.seconds, int(number))
    outcome = forked(lambda: _action(work.words, step, int(number)), folder, PATIENCE, timed)
    try:
        wrong = _after_the_kill(work, whole, folder, outcome, number) or done_again(work, whole, folder)
    except (OSError, ValueError) as error:
        wrong = f"what is left cannot be read: {error}"
    return Case(work.name, name, not wrong, f"{wrong}; killed: {outcome}" if wrong else "")


def _after_the_kill(work: Work, whole: Undisturbed, folder: Path, outcome: Outcome, number: signal.Signals) -> str:
    if number == signal.SIGINT:
        lines = [line for line in outcome.err.splitlines() if not line.startswith(("note:", "warning:"))]
        is_told = outcome.status == 128 + number and len(lines) == 1 and "interrupted" in lines[0]
        if not is_told and outcome.status != whole.status:
            return "the interrupt is not told in one line"
    elif outcome.status not in (-number, whole.status):
        return "another end"
    return half_done(work, whole, folder)


def half_done(work: Work, whole: Undisturbed, folder: Path) -> str:
    """What is lost or half written under its final name after a command that did not end; empty: nothing."""
    if work.name in ("svi", "svi --force", "restarts", "ablate", "svi --resume"):
        return ""  # a run grows; what counts is that it goes on to the same end
    found = {name: content for name, content in left(folder).items() if not _is_hidden(name)}
    lost = [name for name in whole.before if name in whole.after and name not in found]
    odd = [
        name
        for name, content in found.items()
        if content not in (whole.before.get(name), whole.after.get(name)) and not name.endswith(".html")
    ]
    # What was decided is completed by whoever opens the folder next.
    is_decided = any(folder.glob("*/.changes/journal.json"))
    if lost and not is_decided:
        return f"lost {', '.join(lost[:3])}"
    return f"half written: {', '.join(odd[:3])}" if odd else ""


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def done_again(work: Work, whole: Undisturbed, folder: Path) -> str:
    """Do it again, or go on with it; what is other than after a command that nobody disturbed; empty: nothing."""
    words = work.words if work.again is None else work.again(folder)
    outcome = forked(lambda: _action(words), folder, PATIENCE)
    told = {"name --remove": "nothing to remove", "name --output_dir": "expected a new or empty folder"}
    is_done_already = work.name in told and outcome.is_refusal and told[work.name] in outcome.err
    if outcome.status != whole.status and not is_done_already:
        return f"the second time: {outcome}"
    hidden = unfinished(folder)
    if hidden:
        return f"unfinished: {', '.join(hidden[:3])}"
    found = left(folder)
    other = sorted(name for name in {*found, *whole.after} if found.get(name) != whole.after.get(name))
    return f"another end: {', '.join(other[:4])}" if other else ""


def kills(work: Work, whole: Undisturbed, random: np.random.Generator, cases: int) -> Iterator[tuple[Any, ...]]:
    """Signals and when they come: three of four before a call, in equal parts of all calls, else at a moment."""
    for number in range(cases):
        sign = signal.SIGKILL if random.random() < 0.6 else signal.SIGINT
        part = (number + random.random()) / cases
        step = 1 + int(part * whole.steps) if number % 4 != 3 else 0
        yield sign, step, float(random.random())


def main() -> int:
    """Kill them all; 1 if one was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", help="This kind of command alone.")
    parser.add_argument("--cases", type=int, help="Kills of each command.")
    given = parser.parse_args()
    quicker()
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        home, original = Path(place), Path(place) / "original"
        original.mkdir()
        make_files(original)

        def cases() -> Iterator[Case]:
            for number, work in enumerate(WORKS):
                if given.only in (None, work.name):
                    whole = undisturbed(work, original, home)
                    random = np.random.default_rng([given.seed, number])
                    for one in kills(work, whole, random, given.cases or work.cases):
                        yield killed(work, whole, original, home, *one)

        return report("kills", cases(), given.seed, given.json)


if __name__ == "__main__":
    sys.exit(main())
