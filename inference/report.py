"""`python -m inference.report`: the page of a finished run, written anew from what its folder holds.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.words import optional_path
from causalpima.inference.reporting.content import RunContent
from causalpima.inference.reporting.page import write_report
from causalpima.inference.store.run_folder import RunFolder

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.report`, checked.


_USAGE = "python -m inference.report RUN [--output FILE.html]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Write the page of a finished run anew: from its posterior.nc, summary.json and figures, and from what later commands
left in its folder (check.json, diagnose.json, mcmc.json, evaluate.json, query.json). The data are not needed.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        output: File to write, or None: `report.html` in the folder.
    """

    run: Path
    output: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    output = optional_path(found.output)
    return Arguments(Path(found.run), output)


def _build_parser() -> ArgumentParser:
    parser = command_parser("report", _USAGE, _DESCRIPTION)
    parser.add_argument("run", type=str, metavar="RUN", help="Folder of a finished run.")
    parser.add_argument(
        "--output", type=str, metavar="FILE.html", help="File to write; default report.html in the folder of the run."
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("report", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    folder = RunFolder(arguments.run)
    folder.read_config()
    content = RunContent.of_folder(folder)
    path = arguments.output or folder.report
    write_report(content, path)
    print(f"Page      {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
