"""Fits and other calls in threads of one process: each does what it does alone, and the process is left as it was.

    python benchmarks/reliability/threads.py --json threads.json
    python benchmarks/reliability/threads.py --cases 5 --seed 3

Two to four seeded calls begin at once, in threads that change often: fits in Python and on the command line, with one
start and with two, predictions, scores, queries, graphs of runs and tables, diagnoses, chains, and calls that are
refused. Held: what each leaves is what it leaves alone in a process, bit for bit; what is refused raises the same
exception, in its own thread; the random states of torch, NumPy and Python, torch's default type and threads, the
settings and parameters of Pyro are as before; and it ends within ten minutes. Filters of warnings are not looked at:
scikit-learn, xarray and matplotlib change them meanwhile, in whichever thread they are called.
"""

from __future__ import annotations

import json
import random as python_random
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import torch
from campaign import Case, campaign_parser, forked, report
from example_commands import COMMANDS, FIT, imported, make_files, quicker
from kills import left
from mutated_files import samples

from causalpima.inference.fit import fit
from causalpima.inference.training.checkpoint import pack_weights
from causalpima.inference.training.config import FitConfig, from_plain

Call = Callable[[Path], object]
SECONDS = 600.0


def _command(name: str, *words: str) -> Call:
    """A command; OUT in its words is the folder that it may write to."""

    def call(out: Path) -> object:
        return imported(name)([word.replace("OUT", str(out)) for word in words])

    return call


def _fitted(seed: int, restarts: int = 1, **changes: Any) -> Call:
    def call(out: Path) -> object:
        data = samples()[["stress", "hardness"]]
        config = from_plain(FitConfig, _settings(seed))
        result = fit(data, config=config, restarts=restarts, jobs=1, **changes)
        (out / "weights").write_bytes(pack_weights(result.weights))
        (out / "found.json").write_text(json.dumps(result.responsibilities().to_numpy().tolist()))
        return result.status

    return call


def _settings(seed: int) -> dict[str, Any]:
    few = {"pretraining": {"epochs": 3}, "training": {"epochs": 2, "learning_rate": 0.01}, "read_out": {"n_init": 1}}
    modality: dict[str, Any] = {"stress": {}, "hardness": {}}
    return {"nodes": {"N1": 2}, "seed": seed, "distillation": {"epochs": 0}, "modality": modality, **few}


def _constant(out: Path) -> object:
    return fit({"hardness": np.full((9, 2), 3.0)}, nodes=[2])


CALLS: Mapping[str, Call] = {
    "fit": _fitted(0),
    "fit, another seed": _fitted(1),
    "fit, two starts": _fitted(0, 2),
    "fit, refused": _constant,
    "svi": _command("svi", "--data", "data.nc", "--nodes", "2", *FIT, "--output_dir", "OUT/run"),
    "svi, refused": _command("svi", "--data", "data.nc", "--nodes", "2,x", "--output_dir", "OUT/run"),
    "predict": _command("predict", "run", "--data", "new.nc", "--draws", "3", "--output", "OUT/found.nc"),
    "evaluate": _command("evaluate", "run", "--labels", "labels.csv", "--json", "OUT/scores.json"),
    "query": _command("query", "named", "--do", "N1=first", "--draws", "4", "--json", "OUT/answer.json"),
    "graph of a run": _command("graph", "run", "--as_labelled", "--json", "OUT/graph.json"),
    "graph of a table": _command("graph", "--data", "table.csv", "--json", "OUT/graph.json"),
    "diagnose": _command("diagnose", "run", "--draws", "2", "--json", "OUT/verdicts.json"),
    "export": _command("export", "run", "--as_labelled", "--output", "OUT/graph.graphml"),
    "mcmc": _command("mcmc", *COMMANDS["mcmc"][0], "--json", "OUT/chains.json"),
}


def _done(name: str, out: Path) -> str:
    """What a call returns or raises."""
    out.mkdir()
    try:
        return f"returned {CALLS[name](out)!r}"
    except BaseException as error:
        return f"raised {type(error).__name__}: {error}"


def process_state() -> dict[str, Any]:
    """What belongs to the process and not to a thread."""
    return {
        "torch": torch.get_rng_state().tolist(),
        "NumPy": repr(np.random.get_state()),
        "Python": python_random.getstate(),
        "default type": torch.get_default_dtype(),
        "threads": torch.get_num_threads(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "settings of Pyro": pyro.settings.get(),
        "parameters of Pyro": sorted(pyro.get_param_store().keys()),
    }


def _together(names: Sequence[str], folder: Path) -> int:
    sys.setswitchinterval(1e-4)
    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    before, start = process_state(), threading.Barrier(len(names))
    found: dict[int, str] = {}

    def work(number: int, name: str) -> None:
        start.wait()
        found[number] = _done(name, folder / str(number))

    workers = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(names)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    changed = [part for part, value in process_state().items() if value != before[part]]
    answer = {"ends": [found.get(number, "nothing") for number in range(len(names))], "changed": changed}
    (folder / "ends.json").write_text(json.dumps(answer))
    return 0


def alone(name: str, original: Path, home: Path) -> tuple[str, dict[str, Any]]:
    """How a call ends in a process of its own, and the files that it leaves."""
    (end,), _, (files,) = _run([name], original, home)
    return end, files


def _run(names: Sequence[str], original: Path, home: Path) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    folder = home / "out"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    outcome = forked(lambda: _together(names, folder), original, SECONDS)
    if outcome.status != 0:
        raise RuntimeError(f"they did not end well: {outcome}")
    answer = json.loads((folder / "ends.json").read_text())
    ends = [end.replace(str(folder / str(number)), "OUT") for number, end in enumerate(answer["ends"])]
    return ends, answer["changed"], [left(folder / str(number)) for number in range(len(names))]


def together(
    names: Sequence[str], expected: Mapping[str, tuple[str, dict[str, Any]]], original: Path, home: Path
) -> Case:
    """Run calls in threads at once, and compare each with what it does alone."""
    try:
        ends, changed, files = _run(names, original, home)
    except RuntimeError as error:
        return Case(f"{len(names)} threads", "; ".join(names), False, str(error))
    wrong = [f"the process has other {part}" for part in changed]
    for name, end, there in zip(names, ends, files, strict=True):
        if end != expected[name][0]:
            wrong.append(f"{name} {end}, alone {expected[name][0]}")
        other = sorted(key for key in {*there, *expected[name][1]} if there.get(key) != expected[name][1].get(key))
        if other:
            wrong.append(f"{name} leaves other {', '.join(other[:3])}")
    return Case(f"{len(names)} threads", "; ".join(names), not wrong, "; ".join(wrong))


def main() -> int:
    """Try them; 1 if one was not held."""
    parser = campaign_parser(__doc__)
    parser.add_argument("--cases", type=int, default=30, help="How often calls begin at once (default 30).")
    given = parser.parse_args()
    quicker()
    with tempfile.TemporaryDirectory(prefix="threads-") as top:
        home, original = Path(top), Path(top) / "original"
        original.mkdir()
        make_files(original)
        random = np.random.default_rng(given.seed)
        drawn = [random.choice(list(CALLS), 2 + number % 3).tolist() for number in range(given.cases)]
        expected = {name: alone(name, original, home) for name in sorted({name for names in drawn for name in names})}
        cases = (together(names, expected, original, home) for names in drawn)
        return report("threads", cases, given.seed, given.json)


if __name__ == "__main__":
    sys.exit(main())
