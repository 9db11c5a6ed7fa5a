"""`python -m inference.report`: the page of a finished run, written anew from what its folder holds.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from causalpima.inference.command_line.command import Command, Run
from causalpima.inference.reporting.content import content_of_folder
from causalpima.inference.reporting.page import write_report
from causalpima.inference.store.run_folder import RunFolder

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options:
    """Write the page of a finished run anew.

    It is made of posterior.nc, summary.json and figures of the run, and of what later commands left in its folder
    (check.json, diagnose.json, mcmc.json, evaluate.json, query.json). The data are not needed.

    Attributes:
        run: Folder of a finished run.
        output: File to write; default report.html in the folder of the run.
    """

    run: Run
    _: KW_ONLY
    output: Annotated[Path, "FILE.html"] | None = None


def run(options: Options) -> int:
    """Write the page and say where it is; returns the exit status."""
    folder = RunFolder(options.run)
    folder.read_config()
    content = content_of_folder(folder)
    path = options.output or folder.report
    write_report(content, path)
    print(f"Page      {path}")
    return 0


COMMAND = Command("report", Options, run)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
