"""`python -m inference.prepare`: put a table of samples and the files that it names together to one file.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.prepare_arguments import parse
from inference.data.preparation.prepare import make_plan, write_samples
from inference.data.preparation.report import as_json, join_table, roles_table
from inference.results.figures.missing import write_missing
from inference.results.files import write_json

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("prepare", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    plan = make_plan(arguments.options)
    print(roles_table(plan), flush=True)
    done = write_samples(plan, arguments.output)
    names = [modality.name for modality in done.modalities]
    write_missing(arguments.figure, names, done.observed, done.names)
    if arguments.json is not None:
        write_json(arguments.json, as_json(done))
    print(f"{join_table(done)}\nwhat is missing where: {arguments.figure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
