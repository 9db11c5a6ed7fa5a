"""`python -m inference.ablate`: fit several settings to the same data with the same seeds, and compare them.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 a fit ended with an error or no fit is ok, 130 Ctrl-C,
143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.ablate_arguments import parse
from inference.command_line.ablate_run import dry_run, run
from inference.command_line.errors import run_command

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("ablate", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    return dry_run(arguments) if arguments.dry_run else run(arguments, argv)


if __name__ == "__main__":
    sys.exit(main())
