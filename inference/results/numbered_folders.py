"""New run folders with a number, for runs that were not told where to go."""

from __future__ import annotations

import re
from pathlib import Path

from inference.results.files import make_folder
from inference.results.run_folder import RunFolder

__all__ = ["claim_run_folder", "next_run_folder"]


def next_run_folder(dataset: str, home: Path | str = "runs") -> Path:
    """`home/DATASET-001`, `-002`, ...: the first number after all that are there."""
    pattern = re.compile(rf"^{re.escape(dataset)}-(\d+)$")
    names = [path.name for path in Path(home).iterdir()] if Path(home).is_dir() else []
    taken = [int(match[1]) for match in map(pattern.match, names) if match]
    return Path(home) / f"{dataset}-{max(taken, default=0) + 1:03d}"


def claim_run_folder(dataset: str, home: Path | str = "runs") -> RunFolder:
    """Make the next numbered folder; of several processes that ask at once, each gets one of its own.

    Raises:
        OutputError: It can't be made.
    """
    make_folder(home)
    while True:
        path = next_run_folder(dataset, home)
        try:
            path.mkdir()
        except FileExistsError:
            continue
        except OSError:
            make_folder(path)  # raises, and says what to do
        return RunFolder(path)
