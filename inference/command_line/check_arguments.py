"""Arguments of `python -m inference.check`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inference.command_line.flag_types import count, optional_path, whole_number
from inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.check RUN [--repetitions N] [--seed N] [--json FILE] [--figures FOLDER]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Check a finished run against itself: edges where the nodes are independent, clusters and edges from other samples,
modalities shuffled against each other. Nothing is trained again. A table with a verdict per line and what to do.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        repetitions: Repetitions of resampling.
        seed: Seed of everything random.
        json: Another file for the results, or None.
        figures: Another folder for the figure, or None.
    """

    run: Path
    repetitions: int
    seed: int
    json: Path | None
    figures: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    parser = command_parser("check", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--repetitions", type=count, default=20, metavar="N", help="Repetitions of resampling (default 20).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of everything random (default 0).")
    add("--json", type=str, metavar="FILE", help="Write the results to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write the figure into this folder, too.")
    found = parse_in_plain_words(parser, argv, lambda _: _NO_RUN)
    json, figures = optional_path(found.json), optional_path(found.figures)
    return Arguments(Path(found.run), found.repetitions, found.seed, json, figures)
