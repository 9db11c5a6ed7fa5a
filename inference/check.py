"""`python -m inference.check`: the user's own data as the negative control of a finished run.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass

import torch

from causalpima.inference.analyses.check import check_run
from causalpima.inference.command_line.command import Command, Count, File, Folder, Run, Seed
from causalpima.inference.command_line.run_data import data_or_note, keep_results
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import load_run

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options:
    """Check a finished run against itself.

    Edges where the nodes are independent, clusters and edges from other samples, modalities shuffled against each
    other. Nothing is trained again. A table with a verdict per line and what to do.

    Attributes:
        run: Folder of a finished run.
        repetitions: Repetitions of resampling.
        seed: Seed of everything random.
        json: Write the results to this file, too.
        figures: Write the figure into this folder, too.
    """

    run: Run
    _: KW_ONLY
    repetitions: Count = 20
    seed: Seed = 0
    json: File | None = None
    figures: Folder | None = None


def run(options: Options) -> int:
    """Check a run, keep the results in its folder and print them; returns the exit status."""
    torch.set_num_threads(1)
    folder = RunFolder(options.run)
    fitted, data = load_run(options.run), data_or_note(folder)
    posterior, summary = folder.read_posterior(), folder.read_summary()
    result = check_run(fitted, posterior, summary, data, options.repetitions, options.seed)
    keep_results(folder, "check", result.to_dict(), result.write_figures, options.json, options.figures)
    print(result.text())
    return 0


COMMAND = Command("check", Options, run, runs_code=True)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
