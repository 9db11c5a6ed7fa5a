"""A folder of small files and runs, and command lines of every command on them, which the campaigns damage."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from campaign import ROOT, Outcome
from mutated_files import categories, labels, samples, write_netcdf

sys.path.insert(0, str(ROOT))

from causalpima.inference import result as fit_result
from causalpima.inference.command_line.files import OUTPUTS
from causalpima.inference.command_line.svi_parser import build_parser
from causalpima.inference.findings import collect
from causalpima.inference.findings.collect import DrawBounds

__all__ = [
    "COMMANDS",
    "FIT",
    "call",
    "contents",
    "imported",
    "in_folder",
    "make_data",
    "make_files",
    "parser_of",
    "quicker",
    "reading_flags",
    "writing_flags",
]

FIT = (
    "--pretraining.epochs=6",
    "--training.epochs=2",
    "--training.learning_rate=0.01",
    "--distillation.epochs=0",
    "--graph.start_steps=2",
    "--graph.extra_steps=1",
    "--read_out.n_init=1",
    "--quiet",
)
_SVI = ("--data", "data.nc", "--nodes", "2", *FIT)

COMMANDS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "ablate": (
        ("--data", "data.nc", "--nodes", "2", *FIT[:-1], "--arms", "arms.yaml", "--seeds", "1", "--output_dir", "OUT"),
        (
            "--data",
            "data.nc",
            "--nodes",
            "2,2",
            *FIT[:-1],
            "--vary",
            "model.graph=hodge,fixed:graph.csv",
            "--seeds",
            "1",
            "--output_dir",
            "OUT",
        ),
        ("--config", "settings.yaml", "--vary", "model.latent_dim=2,3", "--seeds", "1", "--output_dir", "OUT"),
    ),
    "check": (("run", "--repetitions", "1"),),
    "diagnose": (("run",), ("run", "--draws", "2")),
    "evaluate": (("run",), ("run", "--labels", "labels.csv")),
    "explore": (("data.nc", "--max_cells", "2", "--starts", "2", "--pairs", "1", "--epochs", "1", "--figure", "OUT"),),
    "export": (("run", "--as_labelled", "--output", "OUT"),),
    "graph": (("run", "--as_labelled"), ("--data", "table.csv")),
    "identify": (("--nodes", "2,2"),),
    "mcmc": (("named", "--chains", "2", "--warmup", "4", "--draws", "4"),),
    "name": (
        ("copy",),
        ("copy", "--names", "names.csv"),
        ("copy", "--names", "names.csv", "--output_dir", "OUT"),
        ("named", "--remove"),
    ),
    "predict": (("run", "--data", "new.nc", "--output", "OUT", "--draws", "2"),),
    "prepare": (("samples.csv", "--output", "OUT"),),
    "query": (
        ("named", "--do", "N1=first", "--draws", "4"),
        ("named", "--do", "N1=first", "--counterfactual", "S01", "--data", "new.nc", "--draws", "4"),
    ),
    "report": (("run",),),
    "svi": (
        (*_SVI, "--output_dir", "OUT"),
        (*_SVI, "--restarts", "2", "--jobs", "1", "--output_dir", "OUT"),
        ("--resume", "stopped", "--quiet"),
        ("--config", "settings.yaml", "--output_dir", "OUT"),
        (*_SVI[:2], "--nodes", "2,2", *FIT, "--model.graph", "fixed:graph.csv", "--output_dir", "OUT"),
        (*_SVI, "--data_resolved", "new.nc", "--output_dir", "OUT"),
    ),
}
"""Arguments by command; OUT stands for what is written where a flag is required."""

_ARMS = "plain: {}\nsmall:\n  model.latent_dim: 2\n"
_SETTINGS = "data: data.nc\nnodes: 2\nmodel:\n  graph: fixed:graph.csv\ntraining:\n  epochs: 1\n"
_CURVE = "strain,stress\n" + "".join(f"{k / 8},{k / 3:.3f}\n" for k in range(9))


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work there meanwhile."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def imported(command: str) -> Callable[[Sequence[str]], int]:
    """`main` of a command."""
    main: Callable[[Sequence[str]], int] = importlib.import_module(f"inference.{command}").main
    return main


def quicker() -> None:
    """Import all commands, and leave out the figures of fits and most draws: two thirds of the time of a small run."""
    torch.set_num_threads(1)
    for command in COMMANDS:
        imported(command)
    for name in ("causalpima.inference.reporting.page", "sklearn.mixture", "matplotlib.pyplot", "PIL.Image"):
        importlib.import_module(name)
    setattr(fit_result, "write_figures", lambda *_, **__: [])  # noqa: B010
    setattr(collect, "DrawBounds", partial(DrawBounds, draws=8, predictive_elements=2**16))  # noqa: B010


def call(command: str, words: Sequence[str]) -> Outcome:
    """Run a command in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = int(imported(command)(words))
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except Exception as error:
            print(f"Traceback (most recent call last): {type(error).__name__}: {error}", file=err)
            status = 1
    return Outcome(status, out.getvalue(), err.getvalue())


def make_data(folder: Path) -> None:
    """Data, tables and settings."""
    with in_folder(folder):
        write_netcdf(samples(), Path("data.nc"))
        write_netcdf(samples().isel(sample=slice(0, 6)), Path("new.nc"))
        Path("table.csv").write_text(categories())
        Path("labels.csv").write_text(labels())
        Path("names.csv").write_text("cluster,size,N1\n0,12,first\n1,12,second\n")
        Path("arms.yaml").write_text(_ARMS)
        Path("graph.csv").write_text("from,to\n")
        Path("settings.yaml").write_text(_SETTINGS)
        Path("curves").mkdir()
        rows = [f"S{k:02d},{k / 7:.3f},curves/{k}.csv" for k in range(12)]
        Path("samples.csv").write_text("sample,mass (g),curve\n" + "\n".join(rows) + "\n")
        for k in range(12):
            Path(f"curves/{k}.csv").write_text(_CURVE)


def make_files(folder: Path) -> None:
    """The same, and runs: `run`, `copy` of it, `named`, `stopped` after its first epoch."""
    torch.set_num_threads(1)
    make_data(folder)
    with in_folder(folder):
        _fit("run")
        _fit("copy")
        _fit("stopped", "--stop_after", "1")
        _held(call("name", ["copy", "--names", "names.csv", "--output_dir", "named"]))
        _held(call("name", ["run"]))


def _fit(name: str, *more: str) -> None:
    _held(call("svi", [*_SVI, "--output_dir", name, *more]))


def _held(outcome: Outcome) -> None:
    if outcome.status not in (0, 3):
        raise RuntimeError(f"the files of the campaign could not be made: {outcome}")


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder and what it holds; folders and links as such."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_dir():
            found[name] = "folder"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def parser_of(command: str) -> Any:
    """The parser of a command, as it stands when it parses."""
    if command == "svi":
        return build_parser(None)
    return importlib.import_module(f"inference.{command}").COMMAND.parser()


_NAMES_A_PATH = re.compile(r"FILE|FOLDER|RUN|DATA|TABLE|\.(csv|nc|png|html|yaml)")


def _flags(command: str, is_wanted: Callable[[Any], bool]) -> list[str]:
    return [action.dest for action in parser_of(command)._actions if is_wanted(action)]


def reading_flags(command: str) -> list[str]:
    """Flags and arguments that name something to read."""
    return _flags(
        command, lambda action: bool(_NAMES_A_PATH.search(str(action.metavar))) and action.dest not in OUTPUTS
    )


def writing_flags(command: str) -> list[str]:
    """Flags that name something to write."""
    return _flags(command, lambda action: action.dest in OUTPUTS)
