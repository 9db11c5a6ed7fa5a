"""Several starts: stopped, killed, failing; whatever happens, the end is that of an undisturbed run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import N_EPOCHS, TINY, contents, differences, exit_status, fork, svi
from test_killed_runs import kill_at

from causalpima.inference.name import main as name
from causalpima.inference.run import Run

pytestmark = [
    pytest.mark.usefixtures("without_figures"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork"),  # the copies only run the command and exit
]

N_STARTS = 3  # the least of which one can be left and two be compared
RESTARTS = [*TINY, "--restarts", str(N_STARTS), "--restart_mode", "processes", "--jobs", "1"]
BATCHED = [*TINY, "--restarts", str(N_STARTS), "--restart_mode", "batched"]


def all_of(folder: Path) -> dict[str, Any]:
    """All that a run left, and each of its starts."""
    starts = sorted((folder / "restarts").iterdir())
    assert [start.name for start in starts] == [str(number) for number in range(N_STARTS)]
    metrics = {start.name: _without_seconds(start / "metrics.jsonl") for start in starts}
    return {**contents(folder), "starts": metrics}


def _without_seconds(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) | {"seconds": None} for line in file.read_text().splitlines()]


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert svi(*RESTARTS, "--output_dir", folder).status == 0
    return folder


def test_what_comes_back_is_the_clearest_start(uninterrupted: Path, tmp_path: Path) -> None:
    found = told(uninterrupted)["restarts"]
    assert found["statuses"] == ["ok"] * N_STARTS
    assert found["chosen"] == found["entropies"].index(min(found["entropies"]))
    alone = tmp_path / "alone"
    assert svi(*TINY, "--restart", found["chosen"], "--output_dir", alone).status == 0
    one, other = told(alone), told(uninterrupted)
    assert set(other) - set(one) == {"restarts"}
    for key in set(one) - {"seconds", "verdict", "checksums"}:
        assert one[key] == other[key], key
    assert other["verdict"]["state"] == one["verdict"]["state"] == "doubtful", "of restarts for one reason more"
    assert one["clusters"]["entropy"] == found["entropies"][found["chosen"]]


@pytest.fixture(scope="module")
def uninterrupted_batch(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("batch") / "run"
    assert svi(*BATCHED, "--output_dir", folder).status == 0
    return folder


def test_as_one_computation(uninterrupted: Path, uninterrupted_batch: Path) -> None:
    one, other = told(uninterrupted), told(uninterrupted_batch)
    assert (one["restarts"].pop("mode"), other["restarts"].pop("mode")) == ("processes", "batched")
    assert set(one["restarts"]) == set(other["restarts"])
    found = other["restarts"]
    assert found["statuses"] == ["ok"] * N_STARTS
    assert found["chosen"] == found["entropies"].index(min(found["entropies"]))
    assert other["clusters"]["entropy"] == min(found["entropies"])
    objectives = {lines[0]["objective"] for lines in all_of(uninterrupted_batch)["starts"].values()}
    assert len(objectives) == N_STARTS


@pytest.mark.parametrize("stop", [1, N_EPOCHS])
def test_one_computation_stopped_and_resumed(uninterrupted_batch: Path, tmp_path: Path, stop: int) -> None:
    folder = tmp_path / "run"
    assert svi(*BATCHED, "--output_dir", folder, "--stop_after", stop).status == 0
    assert svi("--resume", folder).status == 0
    assert differences(all_of(uninterrupted_batch), all_of(folder)) == []


def test_one_computation_killed(uninterrupted_batch: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    child = fork([*BATCHED, "--output_dir", str(folder)], tmp_path / "err", partial(kill_at, 85))
    assert exit_status(child) == -signal.SIGKILL, (tmp_path / "err").read_text()
    assert svi("--resume", folder).status == 0
    assert differences(all_of(uninterrupted_batch), all_of(folder)) == []


def test_the_starts_differ_and_share_the_split(uninterrupted: Path) -> None:
    metrics = all_of(uninterrupted)["starts"]
    objectives = {lines[0]["objective"] for lines in metrics.values()}
    assert len(objectives) == N_STARTS


@pytest.mark.parametrize("stop", [[0], [N_EPOCHS], [1, 3]])
def test_stopped_and_resumed(uninterrupted: Path, tmp_path: Path, stop: list[int]) -> None:
    folder = tmp_path / "run"
    first = svi(*RESTARTS, "--output_dir", folder, "--stop_after", stop[0])
    assert first.status == 0
    for epochs in stop[1:]:
        assert svi("--resume", folder, "--stop_after", epochs, "--jobs", 1).status == 0
    if stop[-1] < N_EPOCHS:
        assert f"stopped every start after epoch {stop[0]} of {N_EPOCHS}; go on with: " in first.out
        assert not (folder / "summary.json").exists()
        assert svi("--resume", folder).status == 0
    assert differences(all_of(uninterrupted), all_of(folder)) == []


def test_a_start_that_ended_is_not_repeated(uninterrupted: Path, tmp_path: Path) -> None:
    folder, errors = tmp_path / "run", tmp_path / "err"

    def interrupt_the_second() -> None:
        train = Run.train

        def interrupted(run: Run, *arguments: Any, **more: Any) -> None:
            if run.config.restart == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            train(run, *arguments, **more)

        Run.train = interrupted  # type: ignore[assignment, method-assign]

    child = fork([*RESTARTS, "--output_dir", str(folder)], errors, interrupt_the_second)
    assert exit_status(child) == -signal.SIGKILL
    ended = folder / "restarts" / "0" / "summary.json"
    before = ended.stat().st_mtime_ns
    assert not (folder / "restarts" / "1" / "summary.json").exists()
    assert svi("--resume", folder).status == 0
    assert ended.stat().st_mtime_ns == before
    assert differences(all_of(uninterrupted), all_of(folder)) == []


@pytest.mark.parametrize("step", [40, 101])
def test_killed_between_two_steps_of_writing(uninterrupted: Path, tmp_path: Path, step: int) -> None:
    folder = tmp_path / "run"
    child = fork([*RESTARTS, "--output_dir", str(folder)], tmp_path / "err", partial(kill_at, step))
    assert exit_status(child) == -signal.SIGKILL, (tmp_path / "err").read_text()
    assert svi("--resume", folder).status == 0
    assert differences(all_of(uninterrupted), all_of(folder)) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(uninterrupted: Path, tmp_path: Path, number: int, status: int) -> None:
    def wait_in_the_second_start() -> None:
        from causalpima.inference import run

        save = run.save_checkpoint

        def save_and_wait(folder: Path, epoch: int, *more: Any) -> Path:
            path = save(folder, epoch, *more)
            time.sleep(60 if epoch == 1 and folder.parent.name == "1" else 0)
            return path

        run.save_checkpoint = save_and_wait  # type: ignore[assignment]

    folder, errors = tmp_path / "run", tmp_path / "err"
    child = fork([*RESTARTS, "--output_dir", str(folder)], errors, wait_in_the_second_start)
    while not (folder / "restarts" / "1" / "checkpoint" / "epoch-000001").exists():
        time.sleep(0.005)
    os.kill(child, number)
    assert exit_status(child) == status
    said = errors.read_text()
    assert said.count("\n") == 1
    assert f"interrupted; every finished epoch is saved; go on with: python -m inference.svi --resume {folder}" in said
    assert svi("--resume", folder).status == 0
    assert differences(all_of(uninterrupted), all_of(folder)) == []


def diverging(starts: set[int]) -> Callable[..., None]:
    train = Run.train

    def diverge(run: Run, *arguments: Any, **more: Any) -> None:
        if run.config.restart in starts:
            run.state.diverged = "the objective is not finite"
            return
        train(run, *arguments, **more)

    return diverge


def test_a_start_that_diverges_is_counted_and_no_chain(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = told(uninterrupted)["restarts"]["chosen"]
    monkeypatch.setattr(Run, "train", diverging({kept}))
    outcome = svi(*RESTARTS, "--output_dir", tmp_path / "run")
    assert outcome.status == 0
    assert "1 diverged of 3 starts." in outcome.out
    found = told(tmp_path / "run")["restarts"]
    assert found["statuses"].count("ok") == 2
    assert found["statuses"][kept] == "diverged"
    assert found["chosen"] != kept
    assert found["entropies"][kept] is None
    assert found["ari"][kept][found["chosen"]] is None
    assert found["edge_frequency"]["n_graphs"] == 2
    posterior = contents(tmp_path / "run")["posterior"]
    assert posterior["/posterior/N"].shape[0] == 2
    assert sorted(posterior["/posterior/start_of_chain"]) == sorted({0, 1, 2} - {kept})


def test_all_starts_diverge(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    outcome = svi(*RESTARTS, "--training.learning_rate", 1e20, "--output_dir", folder)
    assert outcome.status == 3
    assert outcome.out.startswith("Verdict    failed\n           - The fit diverged: ")
    assert told(folder)["restarts"]["statuses"] == ["diverged"] * N_STARTS
    names = {"config.yaml", "metrics.jsonl", "restarts", "summary.json"}
    assert {path.name for path in folder.iterdir()} == names
    again = svi("--resume", folder)
    assert (again.status, again.out) == (3, f"{folder} is complete; nothing was done\n{outcome.out}")


def test_all_starts_collapse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.clusters.clustering.FEWEST_SAMPLES", 10**6)
    outcome = svi(*RESTARTS, "--output_dir", tmp_path / "run")
    assert outcome.status == 3
    assert "3 collapsed of 3 starts." in outcome.out
    assert contents(tmp_path / "run")["posterior"]["/posterior/N"].shape[0] == 1


def test_replaced_by_force(uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert svi(*RESTARTS, "--output_dir", folder, "--stop_after", 1).status == 0
    (folder / "restarts" / "notes.txt").write_text("mine")
    outcome = svi(*TINY, "--output_dir", folder, "--force")
    assert outcome.status == 0
    assert "restarts/notes.txt" in outcome.err
    assert [path.name for path in (folder / "restarts").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--restarts", "0"], "restarts: expected a whole number from 1 to 1000, got 0"),
        (["--restarts", "2", "--jobs", "0"], "jobs: expected a whole number >= 1, got 0"),
        (["--restarts", "2", "--restart", "1"], "restart: expected 0 with restarts = 2"),
    ],
)
def test_plans_that_can_not_be(tmp_path: Path, flags: list[str], message: str) -> None:
    outcome = svi(*TINY, *flags, "--output_dir", tmp_path / "run")
    assert outcome.status == 2
    assert outcome.err.startswith(f"svi: error: {message}")
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_start_of_other_data_is_refused(uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted, folder)
    (folder / "summary.json").unlink()
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("n_samples: 96", "n_samples: 95"))
    outcome = svi("--resume", folder)
    assert outcome.status == 2
    assert "restarts/0 was fitted to, got 95 samples (in the run 96); put its data back" in outcome.err


def test_damaged_arrays_of_a_start(uninterrupted: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted, folder)
    (folder / "summary.json").unlink()
    (folder / "restarts" / "1" / "start.npz").write_bytes(b"nothing")
    outcome = svi("--resume", folder)
    assert outcome.status == 2
    assert "start.npz: expected the arrays of a start, got something else; remove its folder" in outcome.err


def test_names_of_the_kept_start_reach_the_others(uninterrupted: Path, tmp_path: Path) -> None:
    folder, table = tmp_path / "run", tmp_path / "names.csv"
    shutil.copytree(uninterrupted, folder)
    before = told(folder)
    rows = ["1,1", "0,1", "1,0", "0,0"]  # cells in reverse order, and nodes exchanged in two of them
    table.write_text("cluster,size,hue,radius\n" + "".join(f"{c},,{row}\n" for c, row in enumerate(rows)))
    assert name([str(folder), "--names", str(table)]) == 0
    after = told(folder)
    assert after["restarts"]["ari"] == before["restarts"]["ari"]
    assert set(after["restarts"]["agreement"]["nodes"]) == {"hue", "radius"}
    posterior = contents(folder)["posterior"]
    assert posterior["/posterior/N"].shape[0] == N_STARTS
    assert posterior["/restarts/node_agreement"][0].tolist() == [1.0, 1.0]
