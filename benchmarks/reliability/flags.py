"""Seeded combinations of odd settings over every command: each ends well, or in one line that names the flag.

    python benchmarks/reliability/flags.py --json flags.json
    python benchmarks/reliability/flags.py --only svi --cases 40 --seed 3

Flags are collected from the parsers. One to three of them get values of the wrong type or out of range, contradict
each other, are unknown, empty, huge, not finite, or in other scripts. Fits are dry runs; other commands work on tiny
runs in a forked child. Held: exit status 0 or 3, or 2 with one line that names one of the flags; no traceback, and
every file is as it was where the command was refused.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Case, Outcome, campaign_parser, forked, report
from example_commands import COMMANDS, contents, imported, make_files, parser_of, quicker, reading_flags, writing_flags

ODD = (
    "",
    " ",
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1",
    "1.5",
    "1e308",
    "99999999999999999999",
    "true",
    "null",
    "[]",
    "{}",
    "[1,2]",
    "{a: 1}",
    "a",
    "a,b",
    "a=1",
    "a->b",
    "a:b",
    "Größe",
    "数",
    "\u202e",
    "x" * 5000,
    "--",
    "-",
    "1:30",
    "0x10",
    "1_000",
    "1e3",
    "'",
    '"',
    "[",
    "{",
    "!!python/object:os.system",
    "&a *a",
    ",",
    ";",
    "..",
    "%s",
    "\t",
    "\n",
    "no",
)
UNKNOWN = ("--no_such_flag", "--jsn", "--Json", "--training.no_such", "--", "--=", "---x", "--größe", "-x", "stray")
SKIPPED = {"help", "config", "print_config", "force", "dry_run", "resume"}

BASES: Mapping[str, tuple[str, ...]] = {
    **{command: lines[0] for command, lines in COMMANDS.items()},
    "svi": ("--data", "data.nc", "--nodes", "2", "--dry_run"),
    "ablate": (
        "--data",
        "data.nc",
        "--nodes",
        "2",
        "--seeds",
        "1",
        "--vary",
        "model.latent_dim=2,3",
        "--output_dir",
        "OUT",
        "--dry_run",
    ),
}
SHARES = {"svi": 4, "ablate": 2}


@dataclass(frozen=True)
class Attempt:
    """A command line.

    Attributes:
        command: Name of the command.
        kind: What is odd about it.
        words: Its arguments.
        flags: The odd ones, without dashes.
    """

    command: str
    kind: str
    words: tuple[str, ...]
    flags: tuple[str, ...]


def flags_of(command: str) -> list[str]:
    """Flags that take a value which is neither read as a file nor written to."""
    paths = {*reading_flags(command), *writing_flags(command)}
    if command == "ablate":
        return [*flags_of("svi"), *_values("ablate", paths)]
    return _values(command, paths)


def _values(command: str, paths: set[str]) -> list[str]:
    actions = parser_of(command)._actions
    return [a.dest for a in actions if a.option_strings and a.dest not in {*SKIPPED, *paths} and a.nargs != 0]


def attempts(random: np.random.Generator, command: str, n: int) -> Iterator[Attempt]:
    """Seeded command lines of a command."""
    names, base = flags_of(command), BASES[command]
    base = tuple(
        "written.png" if word == "OUT" and command == "explore" else "written.nc" if word == "OUT" else word
        for word in base
    )
    for number in range(n):
        if number % 6 == 5 or not names:
            word = UNKNOWN[int(random.integers(len(UNKNOWN)))]
            yield Attempt(command, "unknown", (*base, word, "1"), (word.partition("=")[0].strip("-") or word[:2], "1"))
            continue
        count = 1 + int(random.integers(3)) * (number % 2)
        flags = tuple(random.choice(names, size=min(count, len(names)), replace=False).tolist())
        odd = [ODD[int(random.integers(len(ODD)))] for _ in flags]
        words = tuple(part for flag, value in zip(flags, odd, strict=True) for part in _given(random, flag, value))
        yield Attempt(command, "one value" if len(flags) == 1 else "several values", (*base, *words), flags)


def _given(random: Any, flag: str, value: str) -> tuple[str, ...]:
    return (f"--{flag}={value}",) if random.random() < 0.7 else (f"--{flag}", value)


def tried(attempt: Attempt, original: Path, before: Mapping[str, str], work: Path) -> Case:
    """Run it, and judge."""
    if not work.exists():
        shutil.copytree(original, work, symlinks=True)
    outcome = forked(lambda: imported(attempt.command)(list(attempt.words)), work, seconds=90)
    is_refused = outcome.status not in (0, 3)
    changed = {name for name, _ in contents(work).items() ^ before.items()}
    if changed:
        shutil.rmtree(work)
    wrong = _wrong(attempt, outcome)
    if is_refused and changed:
        wrong = wrong or f"refused, and left {', '.join(sorted(changed)[:3])}"
    shown = " ".join(repr(word[:60]) for word in attempt.words[len(BASES[attempt.command]) :])
    return Case(attempt.command, f"{attempt.kind}: {shown}", not wrong, f"{wrong}: {outcome}" if wrong else "")


def _wrong(attempt: Attempt, outcome: Outcome) -> str:
    if outcome.status is None:
        return "it hangs"
    if outcome.is_traceback:
        return "a traceback"
    if outcome.status in (0, 3):
        odd = [line for line in outcome.err.splitlines() if "Warning:" in line]
        return odd[0] if odd else ""
    if not outcome.is_refusal:
        return "no refusal in one line"
    words = {part for flag in attempt.flags for part in (flag, flag.rpartition(".")[2])}
    return "" if any(word in outcome.err for word in words) else "the flag is not named"


def main() -> int:
    """Try them; 1 if one was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", help="This command alone.")
    parser.add_argument("--cases", type=int, default=18, help="Command lines of each command; of svi four times.")
    given = parser.parse_args()
    quicker()
    with tempfile.TemporaryDirectory(prefix="flags-") as home:
        original, work = Path(home) / "original", Path(home) / "work"
        original.mkdir()
        make_files(original)
        before = contents(original)

        def cases() -> Iterator[Case]:
            for number, command in enumerate(BASES):
                if given.only in (None, command):
                    random = np.random.default_rng([given.seed, number])
                    chosen = attempts(random, command, given.cases * SHARES.get(command, 1))
                    yield from (tried(attempt, original, before, work) for attempt in chosen)

        return report("flags", cases(), given.seed, given.json)


if __name__ == "__main__":
    sys.exit(main())
