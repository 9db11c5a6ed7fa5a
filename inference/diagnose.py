"""`python -m inference.diagnose`: whether a finished run can be believed.

Exit status: 0 done (whatever the verdicts), 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from causalpima.inference.analyses.diagnose import FoundRun, diagnose, fresh_bound
from causalpima.inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words, run_command
from causalpima.inference.command_line.run_data import data_of_run, keep_results
from causalpima.inference.command_line.words import count, optional_path, whole_number
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.verdicts import Finding
from causalpima.inference.folds import FoldPlan, folds_finding, run_folds
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import load_run

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.diagnose`, checked.


_USAGE = "python -m inference.diagnose RUN [--draws N] [--folds K] [--json FILE] [--figures FOLDER]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Whether a finished run can be believed: the guide, clusters, the model against the data, held-out samples, several
starts, Markov chains. A table with a verdict per line and what to do.
"""
_DEFAULT_DRAWS = 100


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        draws: Draws per held-out sample for a new bound of log p(x); None: the bound of the run.
        folds: Number of refits that leave a part of the groups or samples out; None: none.
        jobs: Refits at once, each in a process of its own.
        seed: Seed of draws and folds.
        json: Another file for the results, or None.
        figures: Another folder for the figures, or None.
    """

    run: Path
    draws: int | None
    folds: int | None
    jobs: int
    seed: int
    json: Path | None
    figures: Path | None

    @property
    def fold_draws(self) -> int:
        """Draws per left-out sample."""
        return self.draws or _DEFAULT_DRAWS


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    parser = command_parser("diagnose", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--draws", type=count, metavar="N", help="Draws for a new bound of held-out log p(x); default that of the run.")
    add("--folds", type=_folds_type, metavar="K", help="Fit K times more, without a part of samples or groups each.")
    add("--jobs", type=count, default=1, metavar="N", help="Of these, so many at once, in processes (default 1).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of draws and folds (default 0).")
    add("--json", type=str, metavar="FILE", help="Write the results to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write the figures into this folder, too.")
    found = parse_in_plain_words(parser, argv, lambda _: _NO_RUN)
    json, figures = optional_path(found.json), optional_path(found.figures)
    if found.folds is None and found.jobs > 1:
        raise ValueError("jobs: expected --folds with it, got none; leave it out")
    return Arguments(Path(found.run), found.draws, found.folds, found.jobs, found.seed, json, figures)


def _folds_type(value: object) -> int:
    return whole_number(value, least=2)


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
