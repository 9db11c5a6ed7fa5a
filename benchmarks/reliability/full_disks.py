"""Every command that writes, on a disk that is full: one line, nothing lost or half written, and then the same end.

    python benchmarks/reliability/full_disks.py --json full_disks.json
    python benchmarks/reliability/full_disks.py --only predict --cases 20

Each command of `kills.py` runs in a forked child on copies of small runs, in a file system in memory (tmpfs) with a
seeded number of bytes left: 0, or up to a fifth more than what the command writes. Where this user may not mount, no
file may grow beyond that number of bytes (RLIMIT_FSIZE). Held: exit status 2 and one line, or the whole result; no file
that was there is lost or changed, and none is half written; then, with space, the same command again, or `--resume` of
a fit, leaves what an undisturbed one leaves, and nothing unfinished.
"""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from campaign import Case, Outcome, campaign_parser, forked, report
from example_commands import imported, make_files, quicker
from kills import PATIENCE, WORKS, Undisturbed, Work, copied, done_again, half_done, undisturbed

_PAGE = resource.getpagesize()
_LARGE = 2**29


class Disk:
    """Where a command works, with a limit.

    Args:
        home: An empty folder.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.is_mounted = self._mount(f"size={_LARGE}")

    def _mount(self, options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.home)]
        return shutil.which("mount") is not None and subprocess.run(command, capture_output=True).returncode == 0

    def leave(self, n_bytes: int | None) -> None:
        """Leave so many bytes; None: plenty."""
        if self.is_mounted:
            found = shutil.disk_usage(self.home)
            size = _LARGE if n_bytes is None else max(found.used + n_bytes, _PAGE)  # 0 is no limit
            self._mount(f"remount,size={size}")

    def used(self) -> int:
        """Bytes that are taken."""
        files = (path for path in self.home.rglob("*") if path.is_file())
        return shutil.disk_usage(self.home).used if self.is_mounted else sum(path.stat().st_size for path in files)

    def close(self) -> None:
        """Give it back."""
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.home)], check=True)  # a process that is ending may be there


@contextmanager
def disk(home: Path) -> Iterator[Disk]:
    """A disk in an empty folder."""
    home.mkdir()
    made = Disk(home)
    try:
        yield made
    finally:
        made.close()


def _limited(words: tuple[str, ...], most: int | None) -> int:
    if most is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    status = imported(words[0])(list(words[1:]))
    if most is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return status


def filled(work: Work, whole: Undisturbed, original: Path, place: Disk, n_bytes: int) -> Case:
    """Run a command with so much space left, judge what is left, run it again with space, and judge the end."""
    place.leave(None)
    folder = copied(original, place.home)
    n_bytes = n_bytes if place.is_mounted else max(n_bytes, _PAGE)  # what is printed goes to a file, too
    place.leave(n_bytes)
    outcome = forked(lambda: _limited(work.words, None if place.is_mounted else n_bytes), folder, PATIENCE)
    place.leave(None)
    try:
        wrong = _after_the_end(work, whole, folder, outcome) or done_again(work, whole, folder)
    except (OSError, ValueError) as error:
        wrong = f"what is left cannot be read: {error}"
    where = "left on the disk" if place.is_mounted else "at most in a file"
    name = f"{n_bytes} bytes {where}: {' '.join(work.words)}"
    return Case(work.name, name, not wrong, f"{wrong}; first: {outcome}" if wrong else str(outcome))


def _after_the_end(work: Work, whole: Undisturbed, folder: Path, outcome: Outcome) -> str:
    if outcome.status != whole.status and not outcome.is_refusal:
        return "no refusal in one line"
    if outcome.is_refusal and (folder / ".changes").exists():
        return "a change that nobody decided"
    return half_done(work, whole, folder)


def sizes(random: np.random.Generator, most: int, cases: int) -> Iterator[int]:
    """Bytes that are left: none in one of six, else in equal parts up to a fifth more than what is written."""
    for number in range(cases):
        part = (number + random.random()) / cases
        yield 0 if number % 6 == 0 else int(1.2 * part * most)


def main() -> int:
    """Fill disks for them all; 1 if one was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--only", help="This kind of command alone.")
    parser.add_argument("--cases", type=int, help="Disks for each command.")
    given = parser.parse_args()
    quicker()
    with tempfile.TemporaryDirectory(prefix="disks-") as top, disk(Path(top) / "disk") as place:
        original = Path(top) / "original"
        original.mkdir()
        make_files(original)

        def cases() -> Iterator[Case]:
            for number, work in enumerate(WORKS):
                if given.only in (None, work.name):
                    copied(original, place.home)
                    before = place.used()
                    whole = undisturbed(work, original, place.home)
                    most = max(place.used() - before, _PAGE)
                    random = np.random.default_rng([given.seed, number])
                    for n_bytes in sizes(random, most, given.cases or max(5, work.cases // 2)):
                        yield filled(work, whole, original, place, n_bytes)

        return report("full disks", cases(), given.seed, given.json)


if __name__ == "__main__":
    sys.exit(main())
