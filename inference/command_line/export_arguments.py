"""Arguments of `python -m inference.export`, checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from inference.command_line.parsing import command_parser, parse_in_plain_words
from inference.graphs.export.files import ENDINGS, check_ending

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.export RUN --output FILE [--dag] [--as_labelled]"
_DESCRIPTION = f"""\
Write the graph of a finished run for other programs, in the format that the ending of FILE says: {", ".join(ENDINGS)}.
Edges run from row to column, from cause to effect; what is not directed is written as a line.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        output: File to write.
        dag: One graph of the class instead of the class.
        as_labelled: Export nodes without a meaning, too.
    """

    run: Path
    output: Path
    dag: bool
    as_labelled: bool


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, _missing)
    output = Path(found.output)
    check_ending(output)
    return Arguments(Path(found.run), output, found.dag, found.as_labelled)


def _build_parser() -> ArgumentParser:
    parser = command_parser("export", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--output", type=str, required=True, metavar="FILE", help="File to write; an older one is replaced.")
    add("--dag", action="store_true", help="One directed graph of the equivalence class instead of the class.")
    add("--as_labelled", action="store_true", help="Nodes without a meaning, too, as they happen to be labelled.")
    return parser


def _missing(message: str) -> str:
    missing = [flag for flag in ("run", "output") if re.search(rf"\b{flag}\b", message)]
    return f"{(missing or ['run'])[0]}: expected it, got none; {_USAGE}"
