"""`python -m inference.diagnose`: whether a finished run can be believed.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from inference.command_line.diagnose_arguments import Arguments, parse
from inference.command_line.errors import run_command
from inference.command_line.later_results import keep_results
from inference.command_line.run_data import data_of_run
from inference.data.multimodal import MultimodalData
from inference.diagnostics.diagnose import FoundRun, diagnose, fresh_bound
from inference.diagnostics.finding import Finding
from inference.diagnostics.folds import FoldPlan, folds_finding, run_folds
from inference.results.run_folder import RunFolder
from inference.training.fitted_run import load_run

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("diagnose", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(1)
    folder = RunFolder(arguments.run)
    fitted = load_run(arguments.run)
    run = FoundRun(fitted, folder.read_posterior(), folder.read_summary(), folder.path / "mcmc.nc")
    needs_data = arguments.draws is not None or arguments.folds is not None
    data = _data(folder) if needs_data else None
    fresh = None if data is None or arguments.draws is None else fresh_bound(run, data, arguments.draws, arguments.seed)
    folds = None if data is None or arguments.folds is None else _folds(arguments, run, folder, data)
    found = diagnose(run, fresh, folds)
    keep_results(folder, "diagnose", found.to_dict(), found.write_figures, arguments.json, arguments.figures)
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


def _folds(arguments: Arguments, run: FoundRun, folder: RunFolder, data: MultimodalData) -> Finding:
    """Refits in the folder of the run; those that ended before are not repeated."""
    assert arguments.folds is not None
    home, config = folder.path / "folds", run.fitted.config
    plan = FoldPlan(data, config, arguments.folds, arguments.fold_draws, arguments.seed, home, arguments.jobs)
    minutes = arguments.folds * run.summary["seconds"]["total"] / arguments.jobs / 60
    print(f"{plan.n} refits of about {minutes:.1f} minutes together; Ctrl-C keeps those that ended", file=sys.stderr)
    found = run_folds(plan, lambda fold: print(f"fold {fold} ended", file=sys.stderr))
    return folds_finding(found, data.groups)


if __name__ == "__main__":
    sys.exit(main())
