"""`python -m inference.name`: what the clusters of a run look like, and names for them.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the fit had failed (collapsed), 130 Ctrl-C, 143
SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.name_arguments import parse
from inference.command_line.name_run import name

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("name", lambda arguments: name(parse(arguments)), argv, reads_run=True)


if __name__ == "__main__":
    sys.exit(main())
