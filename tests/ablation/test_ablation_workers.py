"""Processes of an ablation: how many at once, how they end, and that none is left."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from causalpima.inference.ablation.plan import Fit
from causalpima.inference.ablation.records import run_fits, start_process


def fits(tmp_path: Path, n: int) -> list[Fit]:
    return [Fit("cell", seed, (), tmp_path / f"seed-{seed}") for seed in range(n)]


def test_every_fit_ends_with_the_status_of_its_process(tmp_path: Path) -> None:
    ends = run_fits(fits(tmp_path, 3), 2, lambda fit: start_process(fit, ["-c", f"print('é'); exit({fit.seed})"]))
    assert sorted((end.fit.seed, end.status) for end in ends) == [(0, 0), (1, 1), (2, 2)]
    assert (tmp_path / "seed-1.log").read_bytes() == "é\n".encode()


def test_no_more_run_at_once_than_asked_for(tmp_path: Path) -> None:
    running: list[subprocess.Popen[bytes]] = []
    most = []

    def start(fit: Fit) -> subprocess.Popen[bytes]:
        running.append(start_process(fit, ["-c", "import time; time.sleep(0.1)"]))
        most.append(sum(process.poll() is None for process in running))
        return running[-1]

    assert len(list(run_fits(fits(tmp_path, 5), 2, start))) == 5
    assert max(most) <= 2


def test_processes_compute_with_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (fit,) = fits(tmp_path, 1)
    list(run_fits([fit], 1, lambda fit: start_process(fit, ["-c", "import os; print(os.environ['OMP_NUM_THREADS'])"])))
    assert fit.log.read_text().strip() == "1"


def test_what_ends_it_early_ends_the_processes(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(fit: Fit) -> subprocess.Popen[bytes]:
        wait = 0 if fit.seed == 0 else 60
        started.append(subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({wait})"]))
        return started[-1]

    began = time.monotonic()
    ends = run_fits(fits(tmp_path, 2), 2, start)
    next(ends)
    with pytest.raises(KeyboardInterrupt):
        ends.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    assert started[1].poll() is not None
    assert time.monotonic() - began < 30
