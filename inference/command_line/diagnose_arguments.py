"""Arguments of `python -m inference.diagnose`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.command_line.flag_types import count, optional_path, whole_number
from inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.diagnose RUN [--draws N] [--folds K] [--json FILE] [--figures FOLDER]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Whether a finished run can be believed: the guide, clusters, the model against the data, held-out samples, several
starts, Markov chains. A table with a verdict per line and what to do.
"""
_DEFAULT_DRAWS = 100


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        draws: Draws per held-out sample for a new bound of log p(x); None: the bound of the run.
        folds: Number of refits that leave a part of the groups or samples out; None: none.
        jobs: Refits at once, each in a process of its own.
        seed: Seed of draws and folds.
        json: Another file for the results, or None.
        figures: Another folder for the figures, or None.
    """

    run: Path
    draws: int | None
    folds: int | None
    jobs: int
    seed: int
    json: Path | None
    figures: Path | None

    @property
    def fold_draws(self) -> int:
        """Draws per left-out sample."""
        return self.draws or _DEFAULT_DRAWS


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    parser = command_parser("diagnose", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--draws", type=count, metavar="N", help="Draws for a new bound of held-out log p(x); default that of the run.")
    add("--folds", type=_folds, metavar="K", help="Fit K times more, without a part of samples or groups each.")
    add("--jobs", type=count, default=1, metavar="N", help="Of these, so many at once, in processes (default 1).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of draws and folds (default 0).")
    add("--json", type=str, metavar="FILE", help="Write the results to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write the figures into this folder, too.")
    found = parse_in_plain_words(parser, argv, lambda _: _NO_RUN)
    json, figures = optional_path(found.json), optional_path(found.figures)
    if found.folds is None and found.jobs > 1:
        raise ValueError("jobs: expected --folds with it, got none; leave it out")
    return Arguments(Path(found.run), found.draws, found.folds, found.jobs, found.seed, json, figures)


def _folds(value: object) -> int:
    return whole_number(value, least=2)
