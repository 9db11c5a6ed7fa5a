"""The command in this process and in others, on the smallest data that cluster; and what its folders hold."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.svi import main
from causalpima.inference.training.checkpoint import unpack_state, unpack_weights

ROOT = Path(__file__).resolve().parents[2]

# Two epochs of pretraining and two of joint training, of six steps each; 4 cells, all occupied.
_SETTINGS = {
    "dataset": "circles",
    "dataset_options.n_samples": "96",
    "nodes": "2,2",
    "pretraining.epochs": "2",
    "training.epochs": "2",
    "training.batch_size": "16",
    "training.learning_rate": "0.01",
    "modality.image.encoder.sizes": "16",
    "modality.image.decoder.sizes": "16",
    "graph.start_steps": "10",
    "graph.extra_steps": "2",
    "read_out.n_init": "1",
    "read_out.sizes": "6",
}
TINY = [word for name, value in _SETTINGS.items() for word in (f"--{name}", value)]
N_EPOCHS = 4


class Outcome(NamedTuple):
    """How a command ended, and what it said."""

    status: int
    out: str
    err: str


def svi(*arguments: object) -> Outcome:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:  # --help and the like
            status = int(end.code or 0)
    return Outcome(status, out.getvalue(), err.getvalue())


def start_process(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """Start the command as people do."""
    return subprocess.Popen(
        [sys.executable, "-m", "inference.svi", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fork(arguments: list[str], errors: Path, prepare: Callable[[], object] = lambda: None) -> int:
    """Run the command in a copy of this process, which has the imports behind it; returns its process id.

    Args:
        arguments: Those of the command.
        errors: File that gets what it says on standard error.
        prepare: Called in the copy before the command.
    """
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        with errors.open("w") as err, open(os.devnull, "w") as out:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # workers of pytest-xdist ignore it
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                prepare()
                status = main(arguments)
    finally:
        os._exit(status)


def exit_status(child: int) -> int:
    """Wait for a copy of this process; negative: the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(folder: Path) -> dict[str, Any]:
    """All that a run left, without the times that things took, as nested dicts of plain values and arrays.

    Nor has it the checksum of `posterior.nc`, in which times stand.
    """
    summary = {**json.loads((folder / "summary.json").read_text()), "checksums": None}
    checkpoints = [path for path in sorted((folder / "checkpoint").rglob("epoch-*")) if path.is_dir()]
    return {
        "config": (folder / "config.yaml").read_text(),
        "summary": _without_seconds(summary),
        "metrics": [_without_seconds(json.loads(line)) for line in (folder / "metrics.jsonl").read_text().splitlines()],
        "posterior": _arrays(read_posterior(folder / "posterior.nc")) if (folder / "posterior.nc").exists() else None,
        "figures": sorted(path.name for path in folder.glob("figures/*")),
        **{str(path.relative_to(folder)): _checkpoint(path) for path in checkpoints},
    }


def _checkpoint(path: Path) -> dict[str, Any]:
    weights = unpack_weights((path / "weights.safetensors").read_bytes())
    state = unpack_state((path / "state.pt").read_bytes())
    return {"weights": weights, "state": _without_seconds(state)}


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [_without_seconds(item) for item in value] if isinstance(value, list) else value


def _arrays(tree: xr.DataTree) -> dict[str, np.ndarray]:
    return {
        f"{node.path}/{name}": values.to_numpy()
        for node in tree.subtree
        for name, values in node.dataset.variables.items()
        if name != "seconds"
    }


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two contents differ, bit for bit; NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other}, key=str)
        return [d for key in keys for d in differences(one.get(key), other.get(key), f"{where}/{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [d for i, pair in enumerate(zip(one, other, strict=True)) for d in differences(*pair, f"{where}[{i}]")]
    return [] if _equal(one, other) else [f"{where}: {one!r:.80} is not {other!r:.80}"]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return bool(one == other)
