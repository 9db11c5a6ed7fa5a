"""Ablations from beginning to end: repeated, extended, changed, refused, interrupted."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import ROOT, TINY, Outcome

from causalpima.inference import ablate as ablate_fits
from causalpima.inference import ablate_worker
from causalpima.inference.ablate import main
from causalpima.inference.ablation.plan import Fit
from causalpima.inference.ablation.records import METRICS
from causalpima.inference.command_line.run_data import settings_of_run
from causalpima.inference.store.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("without_figures")

GRID = ["--vary", "objective=collapsed,meanfield", "--set", "modality.*.decoder.variance=fixed"]
GRID += ["--metrics", ",".join(METRICS)]


class InThisProcess:
    """A fit that has ended when it is asked for: the process of a fit without the start of an interpreter."""

    def __init__(self, fit: Fit, scored: bool) -> None:
        fit.log.parent.mkdir(parents=True, exist_ok=True)
        with fit.log.open("w") as log, contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
            self.returncode = ablate_worker.main([str(fit.folder), "scores" if scored else "-", *fit.words])

    def poll(self) -> int:
        return self.returncode


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> list[Fit]:
    """Fits run in this process; which were started, in order."""
    fits: list[Fit] = []

    def start(fit: Fit, scored: bool) -> InThisProcess:
        fits.append(fit)
        return InThisProcess(fit, scored)

    monkeypatch.setattr(ablate_fits, "start_fit", start)
    return fits


def ablate(*words: object) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*TINY, *map(str, words)])
    return Outcome(status, out.getvalue(), err.getvalue())


def table(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "table.json").read_text())
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Iterator[Path]:
    """An ablation of two cells and two seeds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ablate_fits, "start_fit", InThisProcess)
        path = tmp_path_factory.mktemp("ablation") / "out"
        assert ablate(*GRID, "--seeds", 2, "--output_dir", path).status in (0, 3)
        yield path


def test_every_cell_and_seed_is_a_run_with_its_settings(folder: Path) -> None:
    for objective in ("collapsed", "meanfield"):
        for seed in (0, 1):
            run = RunFolder(folder / "runs" / f"objective={objective}" / f"seed-{seed}")
            config = settings_of_run(run).config
            assert run.is_complete
            assert (config.objective, config.seed) == (objective, seed)
            assert config.modality["image"].decoder.variance == "fixed"
            data = settings_of_run(run).make_data()
            assert data.n_samples == 96


def test_the_table_has_what_the_summaries_have(folder: Path) -> None:
    found = table(folder)["cells"]["objective=meanfield"]["metrics"]["entropy"]
    for seed in ("0", "1"):
        run = RunFolder(folder / "runs" / "objective=meanfield" / f"seed-{seed}")
        assert found["values"][seed] == run.read_summary()["clusters"]["entropy"]
    assert found["mean"] == pytest.approx(sum(found["values"].values()) / 2)
    assert found["difference"]["n"] == 2
    assert table(folder)["baseline"] == "objective=collapsed"
    # There is one modality, nothing names the nodes, and two nodes have no graph over three factors.
    graphs = {"cpdag_shd", "reported_shd", "trained_shd", "posthoc_shd", "linear_scm_shd"}
    absent = {"cross_modal_r2", "named_accuracy_worst", *graphs}
    assert set(METRICS) - set(table(folder)["metrics"]) == absent


def test_the_same_again_runs_nothing_and_leaves_the_same(folder: Path, started: list[Fit]) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("table.*")}
    ablate(*GRID, "--seeds", 2, "--output_dir", folder)
    assert started == []
    assert {path.name: path.read_bytes() for path in folder.glob("table.*")} == before


def test_another_seed_and_another_cell_are_all_that_runs(folder: Path, started: list[Fit], tmp_path: Path) -> None:
    longer = tmp_path / "out"
    subprocess.run(["cp", "-r", folder, longer], check=True)
    arms = tmp_path / "arms.yaml"
    settings = ["objective=collapsed: {objective: collapsed}", "objective=meanfield: {objective: meanfield}"]
    arms.write_text("\n".join([*settings, "no rate: {training.learning_rate: -1}"]))
    words = ["--arms", arms, *GRID[2:], "--baseline", "objective=meanfield"]
    outcome = ablate(*words, "--seeds", 3, "--output_dir", longer, "--json", tmp_path / "copy.json")
    assert [(fit.cell, fit.seed) for fit in started] == [("objective=collapsed", 2), ("objective=meanfield", 2)]
    assert "refused   no rate: training.learning_rate: expected" in outcome.out
    found = table(longer)
    assert found["cells"]["no rate"]["statuses"] == {"refused": 3}
    assert found["baseline"] == "objective=meanfield"
    assert found == json.loads((tmp_path / "copy.json").read_text())
    records = [json.loads(line) for line in (longer / "records.jsonl").read_text().splitlines()]
    assert len(records) == 9
    assert records[-1]["reason"].startswith("training.learning_rate: expected")


def test_the_table_of_what_is_finished_runs_nothing(folder: Path, started: list[Fit], tmp_path: Path) -> None:
    begun = tmp_path / "out"
    subprocess.run(["cp", "-r", folder, begun], check=True)
    ablate(*GRID, "--seeds", 3, "--output_dir", begun, "--table_only")
    assert started == []
    assert table(begun)["cells"]["objective=meanfield"]["statuses"]["unfinished"] == 1
    outcome = ablate(*GRID, "--output_dir", tmp_path / "other", "--table_only")
    assert (outcome.status, "expected an ablation that was begun" in outcome.err) == (2, True)


def test_all_finished_has_no_time_and_an_absent_metric_is_told(folder: Path, started: list[Fit]) -> None:
    words = ["--seeds", 2, "--output_dir", folder]
    outcome = ablate(*GRID, *words, "--dry_run")
    assert "fits      4, with seeds 0, 1, 4 of them finished" in outcome.out
    assert "time" not in outcome.out
    outcome = ablate(*GRID[:4], *words, "--table_only", "--metrics", "entropy,summary.clusters.entropi")
    assert "warning: no fit has summary.clusters.entropi; names are in docs/ablate.md" in outcome.err
    assert "entropy" not in outcome.err
    ablate(*GRID, *words, "--table_only")


def test_what_was_read_from_a_file_is_told_once(tmp_path: Path) -> None:
    n = np.arange(40.0)
    np.savez(tmp_path / "own.npz", curve=np.stack([np.sin(n), n]).T, alloy=np.arange(40) % 2)
    words = ["--data", tmp_path / "own.npz", "--nodes", "2", "--vary", "training.epochs=1,2"]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert main([*map(str, words), "--labels", "alloy", "--output_dir", str(tmp_path / "out"), "--dry_run"]) == 0
    assert out.getvalue().count("40 samples (") == 1
    assert "labels alloy (for evaluation only)" in out.getvalue()
    assert re.search(r"^curve +2 ", out.getvalue(), re.MULTILINE)


def test_changed_settings_are_refused_by_name(folder: Path, started: list[Fit]) -> None:
    outcome = ablate(*GRID, "--set", "mixture.updates_per_epoch=2", "--seeds", 2, "--output_dir", folder)
    assert outcome.status == 2
    assert "got others for mixture.updates_per_epoch; name another folder" in outcome.err
    assert started == []


def test_a_dry_run_tells_what_would_run_and_writes_nothing(tmp_path: Path, started: list[Fit]) -> None:
    path = tmp_path / "out"
    outcome = ablate(*GRID, "--vary", "training.learning_rate=0.01,-1", "--seeds", 3, "--output_dir", path, "--dry_run")
    assert outcome.status == 0
    assert "baseline  objective=collapsed,training.learning_rate=0.01" in outcome.out
    assert outcome.out.count("\nrefused") == 2
    assert "fits      6, with seeds 0, 1, 2" in outcome.out
    assert "of training for 6 fits, 1 at once" in outcome.out
    assert started == []
    assert not path.exists()


def test_fits_whose_data_or_process_fail_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(fit: Fit, scored: bool) -> object:
        found = InThisProcess(fit, scored)
        if fit.cell == "broken":
            (fit.folder / "summary.json").unlink()
            found.returncode = -9
        return found

    monkeypatch.setattr(ablate_fits, "start_fit", start)
    arms = tmp_path / "arms.yaml"
    arms.write_text(
        "plain: {}\nbroken:\nno data: {observe.variables: {N1: nothing}}\ndiverged: {training.learning_rate: 1e20}\n"
    )
    outcome = ablate("--arms", arms, "--output_dir", tmp_path / "out")
    found = {name: cell["statuses"] for name, cell in table(tmp_path / "out")["cells"].items()}
    assert found["broken"] == {"error": 1}
    assert found["no data"] == {"refused": 1}
    assert found["diverged"] == {"diverged": 1}, outcome.out
    assert outcome.status == 3
    assert "warning: broken, seed 0: its process was killed by signal 9" in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "vary: expected something to compare"),
        (["--vary", "nonsense=1,2"], "nonsense"),
        (
            ["--vary", "objective=x,y"],
            "got one in objective=x that is none; objective: expected one of",
        ),
        ([*GRID, "--baseline", "plain"], "baseline: expected one of objective=collapsed | objective=meanfield"),
        (
            ["--vary", "training.epochs=2,two"],
            "training.epochs=two that is none; training.epochs: expected a whole",
        ),
        (["--vary", "training.epochs=-2,-1"], "got none; training.epochs=-2: training.epochs: expected a number >= 0"),
        (["--set", "training.epochs=two", "--vary", "seed_x=1"], "ablate: error: training.epochs: expected a whole"),
        (["--set", "restarts=0", "--vary", "objective=paper,collapsed"], "ablate: error: restarts: expected"),
        (
            ["--vary", "training.epochs=-1,1", "--baseline", "training.epochs=-1"],
            "baseline: expected a cell that can run",
        ),
        (["--sweep", "a=1..2", "--vary", "b=1"], "vary: expected no other cells"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, words: list[str], message: str) -> None:
    outcome = ablate(*words, "--output_dir", tmp_path / "out")
    assert outcome.status == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    outcome = ablate(*GRID, "--output_dir", tmp_path)
    assert (outcome.status, sorted(path.name for path in tmp_path.iterdir())) == (2, ["thesis.tex"])
    assert "expected a new folder or that of an ablation" in outcome.err


def test_a_sweep_goes_on_where_it_was(tmp_path: Path, started: list[Fit]) -> None:
    pytest.importorskip("optuna")
    words = ["--sweep", "training.learning_rate=1e-3..1e-1:log", "--metric", "nmi", "--output_dir", tmp_path / "out"]
    ablate(*words, "--trials", 1)
    assert [fit.cell for fit in started] == ["default", "trial-000"]
    dry = ablate(*words, "--trials", 3, "--seeds", 2, "--dry_run")
    assert "trials    3 beside the default, so 8 fits, with seeds 0, 1" in dry.out
    assert "of training for 6 fits, 1 at once" in dry.out
    outcome = ablate(*words, "--trials", 2)
    assert [fit.cell for fit in started] == ["default", "trial-000", "trial-001"]
    assert re.search(r"^3/3 trial-001 \(training\.learning_rate=\S+\), seed 0: ", outcome.out, re.MULTILINE)
    best = json.loads((tmp_path / "out" / "best.json").read_text())
    values = {name: cell["metrics"]["nmi"]["mean"] for name, cell in table(tmp_path / "out")["cells"].items()}
    assert best["nmi"] == max(value for name, value in values.items() if name != "default")
    assert best["default"] == values["default"]
    assert best["is_better_than_default"] == (best["nmi"] > best["default"])
    told = re.search(r"^best      (no trial is better than the default)?.*$", outcome.out, re.MULTILINE)
    assert told is not None
    assert (told[1] is None) == best["is_better_than_default"]
    assert f"{best['cell']}, nmi {best['nmi']:.3f}" in told[0]
    page = (tmp_path / "out" / "table.html").read_text()
    assert ("no trial is better than the default" in page) != best["is_better_than_default"]


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path, started: list[Fit]) -> None:
    words = [*TINY, "--vary", "objective=collapsed,meanfield", "--output_dir", "my out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "inference.ablate", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    runs = tmp_path / "my out" / "runs"
    second = runs / "objective=meanfield" / "seed-0.log"
    deadline = time.monotonic() + 180
    while not second.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.endswith("go on with: python -m inference.ablate " + " ".join(words[:-1]) + " 'my out'\n")
    assert RunFolder(runs / "objective=collapsed" / "seed-0").is_complete
    with contextlib.chdir(tmp_path):
        main(words)
    assert [fit.cell for fit in started] == ["objective=meanfield"]
    assert {name: cell["metrics"]["entropy"]["n"] for name, cell in table(tmp_path / "my out")["cells"].items()} == {
        "objective=collapsed": 1,
        "objective=meanfield": 1,
    }, second.read_text()
