"""Starts in processes of their own, as people run them: the same result, and nothing left running."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import TINY, contents, differences, start_process, svi

pytestmark = pytest.mark.usefixtures("without_figures")

# Enough epochs for a signal to arrive while they run.
RESTARTS = [
    *TINY,
    "--training.epochs",
    "20",
    "--restarts",
    "2",
    "--restart_mode",
    "processes",
    "--jobs",
    "2",
    "--quiet",
]


def children(process: int) -> list[int]:
    """Processes that a process started and that are still there."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or ") Z " not in status.read_text()


def wait_until_gone(processes: list[int], seconds: float = 30.0) -> list[int]:
    until = time.monotonic() + seconds
    while (left := [process for process in processes if is_there(process)]) and time.monotonic() < until:
        time.sleep(0.05)
    return left


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert svi(*RESTARTS, "--jobs", 1, "--output_dir", folder).status == 0
    return folder


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_stopped_in_between_and_gone_on_with(undisturbed: Path, tmp_path: Path, number: int, status: int) -> None:
    folder = tmp_path / "run"
    with start_process(*RESTARTS, "--output_dir", folder, cwd=tmp_path) as process:
        while not list(folder.glob("restarts/*/checkpoint/epoch-*")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        started = children(process.pid)
        assert len(started) == 2
        process.send_signal(number)
        _, said = process.communicate()
        assert process.returncode == status
    assert wait_until_gone(started) == []
    if number == signal.SIGINT:
        assert said == (
            f"svi: interrupted; every finished epoch is saved; go on with: python -m inference.svi --resume {folder}\n"
        )
    assert svi("--resume", folder, "--jobs", 1).status == 0
    one, other = contents(undisturbed), contents(folder)
    assert one.pop("config").replace("jobs: 1", "jobs: 2") == other.pop("config")
    assert differences(one, other) == []


SCRIPT = """
import warnings

import numpy as np

from causalpima.inference.training import fit
from causalpima.inference.training.config import FitConfig, PretrainingConfig, TrainingConfig
from causalpima.inference.training.config import default_modality

rng = np.random.default_rng(0)
values = np.repeat(np.eye(4), 20, axis=0) * 5 + rng.normal(size=(80, 4))
config = FitConfig(
    {"A": 2, "B": 2},
    modality={"assay": default_modality("vector", (4,))},
    pretraining=PretrainingConfig(epochs=2),
    training=TrainingConfig(epochs=2, batch_size=16),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    result = fit({"assay": values}, config=config, restarts=2, jobs=2, restart_mode="processes")
print(result.summary["restarts"]["mode"])
"""


def run_as_script(folder: Path, text: str) -> None:
    """Run a file as `__main__`, which is what other processes would import, in this process, which has the imports."""
    (folder / "script.py").write_text(text)
    runpy.run_path(str(folder / "script.py"), run_name="__main__")


def test_a_script_needs_no_guard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_as_script(tmp_path, SCRIPT)
    assert capsys.readouterr().out == "processes\n"


def test_decoders_of_a_script_are_refused(tmp_path: Path) -> None:
    law = "class Law(Linear):\n    pass\n"
    head = (
        "import numpy as np\nfrom inference.data.roles import ReadOptions\nfrom inference.training import fit\n"
        "from causalpima.models.decoders.physics import Linear\n"
    )
    call = (
        'fit({"c": np.random.default_rng(0).normal(size=(40, 8))}, nodes=[2], decoders={"c": Law()}, '
        'options=ReadOptions(kinds={"c": "curve"}), '
        "restarts=2, jobs=2)\n"
    )
    with pytest.raises(ValueError, match=r"^decoders: expected objects that can be sent to other processes"):
        run_as_script(tmp_path, head + law + call)


def test_what_goes_wrong_in_a_process_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert svi(*RESTARTS, "--jobs", 1, "--stop_after", 1, "--output_dir", folder).status == 0
    for file in folder.glob("restarts/1/checkpoint/*/state.pt"):
        file.write_bytes(b"nothing")
    outcome = svi("--resume", folder, "--jobs", 2)
    assert outcome.status == 2
    assert outcome.err.startswith("svi: error: no checkpoint in ")
    assert outcome.err.count("\n") == 1
