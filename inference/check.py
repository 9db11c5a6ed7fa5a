"""`python -m inference.check`: the user's own data as the negative control of a finished run.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from causalpima.inference.analyses.check import check_run
from causalpima.inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.run_data import data_or_note, keep_results
from causalpima.inference.command_line.words import count, optional_path, whole_number
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import load_run

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.check`, checked.


_USAGE = "python -m inference.check RUN [--repetitions N] [--seed N] [--json FILE] [--figures FOLDER]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Check a finished run against itself: edges where the nodes are independent, clusters and edges from other samples,
modalities shuffled against each other. Nothing is trained again. A table with a verdict per line and what to do.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        repetitions: Repetitions of resampling.
        seed: Seed of everything random.
        json: Another file for the results, or None.
        figures: Another folder for the figure, or None.
    """

    run: Path
    repetitions: int
    seed: int
    json: Path | None
    figures: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    parser = command_parser("check", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--repetitions", type=count, default=20, metavar="N", help="Repetitions of resampling (default 20).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of everything random (default 0).")
    add("--json", type=str, metavar="FILE", help="Write the results to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write the figure into this folder, too.")
    found = parse_in_plain_words(parser, argv, lambda _: _NO_RUN)
    json, figures = optional_path(found.json), optional_path(found.figures)
    return Arguments(Path(found.run), found.repetitions, found.seed, json, figures)


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
