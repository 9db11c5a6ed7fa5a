"""Fits in processes of their own, some at once; each with one thread, so that cores are not fought over."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from inference.ablation.plan import Fit
from inference.results.files import make_folder

__all__ = ["Ended", "run_fits", "start_process"]

_PAUSE = 0.05
_PATIENCE = 30.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Ended(NamedTuple):
    """A fit that ended, with the exit status of its process and the seconds it took."""

    fit: Fit
    status: int
    seconds: float


def start_process(fit: Fit, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a fit; what it prints goes to its log.

    It is not in our process group: Ctrl-C reaches this process alone, which tells the fits to stop.

    Args:
        fit: The fit.
        command: Arguments of the Python interpreter.
    """
    make_folder(fit.log.parent)
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with fit.log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,
        )


def run_fits(fits: Sequence[Fit], n_jobs: int, start: Callable[[Fit], subprocess.Popen[bytes]]) -> Iterator[Ended]:
    """Run fits, `n_jobs` at once; yields each as it ends.

    Whatever ends this early stops the processes; they save all epochs that they finished.

    Args:
        fits: The fits, in the order in which they are started.
        n_jobs: Most processes at once.
        start: Starts the process of a fit.
    """
    waiting, running = list(fits), dict[Fit, tuple[subprocess.Popen[bytes], float]]()
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                fit = waiting.pop(0)
                running[fit] = (start(fit), time.monotonic())
            for fit, (process, began) in list(running.items()):
                if process.poll() is not None:
                    del running[fit]
                    yield Ended(fit, process.returncode, time.monotonic() - began)
            time.sleep(_PAUSE)
    finally:
        _stop([process for process, _ in running.values()])


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
        process.kill()
        process.wait()
