"""Arguments of `python -m inference.name`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from inference.command_line.flag_types import optional_path
from inference.command_line.parsing import add_code_flag, add_computing_flags, command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.name RUN [--names FILE.csv [--output_dir FOLDER] | --remove] [--FLAG VALUE ...]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Show what every cluster of a finished run looks like, and take names for the clusters.

Without --names: writes RUN/names/contact_sheet.png and a table RUN/names/names.csv to fill in. With --names: numbers
and names the cells of the run as the table says, fits the graph to them, and writes its results anew.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        names: Table of names, or None to write one.
        output_dir: Folder for a named copy of the run, or None: names go into the run itself.
        remove: Take the names of the run away again.
        device: Where to compute.
        threads: Threads to compute with.
        json: File for the summary, or None.
    """

    run: Path
    names: Path | None
    output_dir: Path | None
    remove: bool
    device: str
    threads: int
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    arguments = Arguments(
        Path(found.run),
        optional_path(found.names),
        optional_path(found.output_dir),
        found.remove,
        found.device,
        found.threads,
        optional_path(found.json),
    )
    _check(arguments)
    return arguments


def _build_parser() -> ArgumentParser:
    parser = command_parser("name", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--names", type=str, metavar="FILE.csv", help="The table, filled in.")
    add("--output_dir", type=str, metavar="FOLDER", help="Leave RUN as it is, and write a named copy of it here.")
    add("--remove", action="store_true", help="Take the names away: the run as it was found.")
    add_computing_flags(parser)
    add("--json", type=str, metavar="FILE", help="Write what is printed to this file, too, for machines.")
    return parser


def _check(arguments: Arguments) -> None:
    if arguments.remove and (arguments.names is not None or arguments.output_dir is not None):
        raise ValueError("remove: expected it without names and output_dir, got both; leave one of them out")
    if arguments.output_dir is not None and arguments.names is None:
        raise ValueError("output_dir: expected it with names, got none; give the table by --names FILE.csv")
    if arguments.output_dir is not None and arguments.output_dir.absolute() == arguments.run.absolute():
        raise ValueError("output_dir: expected another folder than that of the run, got the same; leave it out")
