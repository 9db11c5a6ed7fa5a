"""`python -m inference.svi`: fit causalPIMA to a data set and leave a run folder.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the fit failed (diverged or collapsed), 130 Ctrl-C,
143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.svi_arguments import parse
from inference.command_line.svi_run import dry_run, resume, start, typed_code

__all__ = ["command", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("svi", command, argv)


def command(argv: Sequence[str]) -> int:
    """The same, with exceptions where input or machine were not up to it."""
    with typed_code(argv):
        arguments = parse(argv)
        if arguments.resume is not None:
            return resume(arguments, argv)
        return dry_run(arguments) if arguments.dry_run else start(arguments)


if __name__ == "__main__":
    sys.exit(main())
