"""`python -m inference.identify`: how many meanings of the nodes remain, and what to add; nothing is fitted.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.identify_arguments import parse
from inference.identifiability import identify
from inference.results.files import write_json

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("identify", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    report = identify(**arguments.side_information)
    if arguments.json is not None:
        write_json(arguments.json, report.to_dict())
    print(report.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
