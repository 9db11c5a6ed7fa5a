"""Every output flag of every command, pointed at everything that the command reads: is it refused, and nothing lost?

    python benchmarks/reliability/outputs_on_inputs.py --json outputs.json

Flags are collected from the parsers. What is read: the files and runs that a command line names, what is named within
them (curves of a manifest, data and settings of a run, graphs of settings), the files that a run is made of, and those
of another run. Each by its own path, a symlink, a hard link, a relative spelling and by way of a linked folder, with
`--force`. Held: exit status 2 and one line, and every file is as it was.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign import Case, campaign_parser, report
from example_commands import COMMANDS, call, contents, in_folder, make_files, reading_flags, writing_flags

from causalpima.inference.command_line.files import OUTPUTS

Link = Callable[[str], str]


def _symlink(target: str) -> str:
    Path("link").symlink_to(Path(target).absolute())
    return "link"


def _hard_link(target: str) -> str:
    os.link(target, "hard" + Path(target).suffix)
    return "hard" + Path(target).suffix


def _linked_folder(target: str) -> str:
    Path("link").symlink_to(Path(target).absolute().parent)
    return f"link/{Path(target).name}"


WAYS: Mapping[str, Link] = {
    "itself": lambda target: target,
    "absolute": lambda target: str(Path(target).absolute()),
    "another spelling": lambda target: f"curves/.././{target}",
    "a symlink": _symlink,
    "a hard link": _hard_link,
    "a linked folder": _linked_folder,
}

READ_WITHIN: Mapping[str, tuple[str, ...]] = {
    "run": ("data.nc",),
    "copy": ("data.nc",),
    "named": ("data.nc",),
    "stopped": ("data.nc",),
    "samples.csv": ("curves/0.csv", "curves/11.csv"),
    "settings.yaml": ("data.nc", "graph.csv"),
}
OF_A_RUN = (
    "config.yaml",
    "summary.json",
    "metrics.jsonl",
    "posterior.nc",
    "report.html",
    "checkpoint/final/weights.safetensors",
    "checkpoint/final/new.json",
    "figures/graph.png",
    "names/names.csv",
    "mcmc.nc",
    "restarts/0/summary.json",
)
"""Names that the program gives a meaning to in a run, whether they are there or not."""


@dataclass(frozen=True)
class Pair:
    """An output flag and what it is pointed at.

    Attributes:
        command: Name of the command.
        words: Its arguments without the flag.
        flag: The flag, without dashes.
        target: What it is pointed at.
        read: What reads that: a flag, a file, or a run.
        way: How the target is spelled.
    """

    command: str
    words: tuple[str, ...]
    flag: str
    target: str
    read: str
    way: str

    def __str__(self) -> str:
        return f"{self.command} {' '.join(self.words)} --{self.flag} {self.target} ({self.way}; {self.read})"


def targets(words: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    """What a command line reads, and what reads it: itself, by its flag; what is within, by its file or run."""
    flag = "argument"
    for word in words:
        name, equals, value = word.partition("=")
        flag = name if word.startswith("--") else flag
        for part in (value if equals else word).split(","):
            place = part.rpartition(":")[2]
            if place and (folder / place).is_file():
                yield place, flag
            for within in READ_WITHIN.get(place, ()):
                yield within, place
            if (folder / place / "config.yaml").is_file():
                yield from ((f"{place}/{name}", f"run {place}") for name in OF_A_RUN)
    yield from ((f"other/{name}", "another run") for name in ("config.yaml", "summary.json", "mcmc.nc"))


def pairs(folder: Path) -> Iterator[Pair]:
    """All of them, each command, flag and target once."""
    seen = set()
    for command, lines in COMMANDS.items():
        for words in lines:
            for flag in writing_flags(command):
                if flag == "output_dir" and "--resume" in words:
                    continue
                kept = _without(words, flag)
                for target, read in dict.fromkeys(targets(words, folder)):
                    if (command, flag, target, read) in seen or not _is_lost(command, words, flag, target):
                        continue
                    seen.add((command, flag, target, read))
                    for way in WAYS:
                        if _can_be(way, target, read, folder):
                            yield Pair(command, kept, flag, target, read, way)


def _can_be(way: str, target: str, read: str, folder: Path) -> bool:
    """Whether there is such a way to the target, and something would be lost by it.

    Files are replaced, not written into: by a second name of it nobody loses a file that is not read now.
    """
    if way == "a hard link":
        name = target.partition("/")[2]
        is_read_again = not read.startswith(("run ", "another")) or name in OF_A_RUN[:4]
        return (folder / target).is_file() and is_read_again and read != "another run"
    return way != "a symlink" or (folder / target).is_file()


def _without(words: Sequence[str], flag: str) -> tuple[str, ...]:
    """The arguments without a flag and its value; what else is written goes to new files."""
    kept, skipped = [], False
    for word in words:
        if skipped or word == f"--{flag}":
            skipped = not skipped
            continue
        kept.append("new.nc" if word == "OUT" else word)
    return tuple(kept)


def _is_lost(command: str, words: Sequence[str], flag: str, target: str) -> bool:
    """Whether the target is not what the command is there to write anew."""
    own = {"report": "report.html"}.get(command, f"{command}.json")
    return not (OUTPUTS[flag] == "file" and Path(target).name == own and Path(target).parent.name in words)


def tried(pair: Pair, original: Path, before: Mapping[str, str]) -> Case:
    """Run the command; judge what it says and what is left, and put the folder right where it is not."""
    work = original.parent / "work"
    if not work.exists():
        shutil.copytree(original, work, symlinks=True)
    with in_folder(work):
        place = WAYS[pair.way](pair.target)
        made = [path for path in ("link", "hard" + Path(pair.target).suffix) if os.path.lexists(path)]
        outcome = call(pair.command, [*pair.words, f"--{pair.flag}", place, "--force"])
        for path in made:
            Path(path).unlink(missing_ok=True)
        changed = {name for name, _ in contents(work).items() ^ before.items()}
    wrong = f"changed {', '.join(sorted(changed)[:4])}" if changed else "" if outcome.is_refusal else "no refusal"
    if wrong:
        shutil.rmtree(work)
    return Case(pair.command, str(pair), not wrong, f"{wrong}: {outcome}" if wrong else str(outcome))


def uncovered() -> Iterator[Case]:
    """A flag that reads and that no command line here has: the campaign is to be told of it."""
    for command, lines in COMMANDS.items():
        named = {word.removeprefix("--") for words in lines for word in words}
        for flag in reading_flags(command):
            if flag not in named and flag not in ("run", "manifest", "data"):
                yield Case("uncovered", f"{command} --{flag}", False, "no command line of the campaign has it")


def main() -> int:
    """Try all pairs; 1 if one of them was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", help="This command alone.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outputs-") as home:
        original = Path(home) / "original"
        original.mkdir()
        make_files(original)
        shutil.copytree(original / "run", original / "other")
        before = contents(original)
        chosen = [pair for pair in pairs(original) if given.only in (None, pair.command)]
        return report("outputs on inputs", [*uncovered(), *(tried(p, original, before) for p in chosen)], 0, given.json)


if __name__ == "__main__":
    sys.exit(main())
