"""`python -m inference.diagnose`: whether a finished run can be believed.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Annotated

import torch

from causalpima.inference.analyses.diagnose import FoundRun, diagnose, fresh_bound
from causalpima.inference.command_line.command import Command, Count, File, Folder, Run, Seed
from causalpima.inference.command_line.run_data import data_of_run, keep_results
from causalpima.inference.command_line.words import whole_number
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.verdicts import Finding
from causalpima.inference.folds import FoldPlan, folds_finding, run_folds
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import load_run

__all__ = ["COMMAND", "Options", "main", "parse", "run"]

_FOLD_DRAWS = 100


@dataclass(frozen=True)
class Options:
    """Say whether a finished run can be believed.

    The guide, clusters, the model against the data, held-out samples, several starts, Markov chains. A table with a
    verdict per line and what to do.

    Attributes:
        run: Folder of a finished run.
        draws: Draws per held-out sample for a new bound of log p(x); default the bound of the run.
        folds: Fit K times more, without a part of the groups or samples each.
        jobs: Of these, so many at once, each in a process of its own.
        seed: Seed of draws and folds.
        json: Write the results to this file, too.
        figures: Write the figures into this folder, too.
    """

    run: Run
    _: KW_ONLY
    draws: Count | None = None
    folds: Annotated[int, partial(whole_number, least=2), "K"] | None = None
    jobs: Count = 1
    seed: Seed = 0
    json: File | None = None
    figures: Folder | None = None

    def __post_init__(self) -> None:
        if self.folds is None and self.jobs > 1:
            raise ValueError("jobs: expected --folds with it, got none; leave it out")


def run(options: Options) -> int:
    """Diagnose a run, keep the results in its folder and print them; returns the exit status."""
    torch.set_num_threads(1)
    folder = RunFolder(options.run)
    fitted = load_run(options.run)
    found_run = FoundRun(fitted, folder.read_posterior(), folder.read_summary(), folder.path / "mcmc.nc")
    data = None if options.draws is None and options.folds is None else _data(folder)
    fresh = None if data is None or options.draws is None else fresh_bound(found_run, data, options.draws, options.seed)
    folds = None if data is None or options.folds is None else _folds(options, found_run, folder, data)
    found = diagnose(found_run, fresh, folds)
    keep_results(folder, "diagnose", found.to_dict(), found.write_figures, options.json, options.figures)
    print(found.text())
    return 0


def _data(folder: RunFolder) -> MultimodalData:
    data = data_of_run(folder)
    if data is None:
        raise ValueError(
            f"{folder.path}: expected a run that names its data, got one of the Python call fit; leave --draws and "
            "--folds out, or call result.diagnose(...)"
        )
    return data


def _folds(options: Options, run: FoundRun, folder: RunFolder, data: MultimodalData) -> Finding:
    """Refits in the folder of the run; those that ended before are not repeated."""
    assert options.folds is not None
    home, config = folder.path / "folds", run.fitted.config
    plan = FoldPlan(data, config, options.folds, options.draws or _FOLD_DRAWS, options.seed, home, options.jobs)
    minutes = options.folds * run.summary["seconds"]["total"] / options.jobs / 60
    print(f"{plan.n} refits of about {minutes:.1f} minutes together; Ctrl-C keeps those that ended", file=sys.stderr)
    found = run_folds(plan, lambda fold: print(f"fold {fold} ended", file=sys.stderr))
    return folds_finding(found, data.groups)


COMMAND = Command("diagnose", Options, run, runs_code=True)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
