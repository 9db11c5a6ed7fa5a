"""`python -m inference.report`: the page of a finished run, written anew from what its folder holds.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from inference.command_line.errors import run_command
from inference.command_line.report_arguments import parse
from inference.results.page.content import RunContent
from inference.results.report import write_report
from inference.results.run_folder import RunFolder

__all__ = ["main"]


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
