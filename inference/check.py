"""`python -m inference.check`: the user's own data as the negative control of a finished run.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from inference.checks.of_run import check_run
from inference.command_line.check_arguments import parse
from inference.command_line.errors import run_command
from inference.command_line.later_results import keep_results
from inference.command_line.run_data import data_or_note
from inference.results.run_folder import RunFolder
from inference.training.fitted_run import load_run

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("check", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(1)
    folder = RunFolder(arguments.run)
    fitted, data = load_run(arguments.run), data_or_note(folder)
    posterior, summary = folder.read_posterior(), folder.read_summary()
    result = check_run(fitted, posterior, summary, data, arguments.repetitions, arguments.seed)
    keep_results(folder, "check", result.to_dict(), result.write_figures, arguments.json, arguments.figures)
    print(result.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
