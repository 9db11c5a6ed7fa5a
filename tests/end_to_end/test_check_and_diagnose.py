"""A run, then its checks and diagnostics: tables, files, figures; refits that leave samples out; bad input."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from command import TINY, svi

from causalpima.inference import result as fit_result
from causalpima.inference.check import main as check
from causalpima.inference.diagnose import main as diagnose
from causalpima.inference.fit import fit
from causalpima.inference.result import FitResult
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    ModalityConfig,
    PretrainingConfig,
    TrainingConfig,
)

VERDICTS = {"passes", "unclear", "fails", "skipped"}


def samples() -> xr.Dataset:
    """Two modalities that share a phase, in specimens of four; one lacks some samples."""
    rng = np.random.default_rng(0)
    phase = np.repeat(rng.integers(0, 2, 24), 4)
    stress = np.linspace(0, 2, 8) * np.where(phase, 40.0, 25.0)[:, None] + rng.normal(0, 2, (96, 8))
    hardness = np.where(phase, 210.0, 150.0) + rng.normal(0, 10, 96)
    hardness[::7] = np.nan
    variables = {"stress": (("sample", "strain"), stress), "hardness": ("sample", hardness)}
    specimen = {"specimen": ("sample", np.repeat([f"s{i}" for i in range(24)], 4))}
    return xr.Dataset({**variables, **specimen}, {"sample": [f"S{i}" for i in range(96)]})


@pytest.fixture(scope="module")
def run(no_figures: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    samples().to_netcdf(folder / "samples.nc", engine="h5netcdf")
    quick = ["--pretraining.epochs", "4", "--training.epochs", "3", "--training.validation_fraction", "0.2"]
    quick += ["--training.batch_size", "16", "--training.learning_rate", "0.01", "--groups", "specimen"]
    quick += ["--distillation.epochs", "0", "--read_out.n_init", "1", "--graph.start_steps", "10"]
    quick += [f"--modality.{name}.{part}.sizes=8" for name in ("stress", "hardness") for part in ("encoder", "decoder")]
    ended = svi("--data", folder / "samples.nc", "--nodes", "phase=2", "--output_dir", folder / "r", *quick)
    assert ended.status in (0, 3), ended.err
    return folder / "r"


@pytest.fixture(scope="module")
def no_figures() -> Iterator[None]:
    """Of the run itself: they take longer than the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_result, "write_figures", lambda *_, **__: [])
        yield


@pytest.fixture(scope="module")
def result() -> FitResult:
    entry = ModalityConfig(EncoderConfig(sizes=(8,)), DecoderConfig(sizes=(8,)))
    config = FitConfig(
        nodes={"A": 2, "B": 2},
        pretraining=PretrainingConfig(epochs=3),
        training=TrainingConfig(epochs=2, batch_size=16, learning_rate=1e-2),
        modality={"stress": entry, "hardness": entry},
        mask={"stress": ("A",), "hardness": ("B",)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it collapses: two nodes for one phase, hardly trained
        return fit(samples()[["stress", "hardness"]], config=config)


def test_check_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run), "--repetitions", "2", "--json", str(tmp_path / "c.json"), "--figures", str(tmp_path / "f")]
    assert check(words) == 0
    found, printed = json.loads((tmp_path / "c.json").read_text()), capsys.readouterr().out
    assert {line["verdict"] for line in found["lines"]} <= VERDICTS
    assert found["verdict"] in VERDICTS
    assert list(found["bootstrap"]) == ["groups"]
    assert len(found["bootstrap"]["groups"]["ari"]) == 2
    assert set(found["modalities"]["permuted"]) == {"stress", "hardness"}
    assert found["skipped"]["edges"] == "there is one node"
    assert "stress permuted" in printed
    assert max(map(len, printed.splitlines())) <= 100
    assert (tmp_path / "f" / "check.png").stat().st_size > 1000
    assert json.loads((run / "check.json").read_text()) == found
    assert (run / "figures" / "check.png").is_file()
    assert "Negative controls" in (run / "report.html").read_text()


def test_check_is_repeatable(run: Path, tmp_path: Path) -> None:
    found = []
    for name in ("a.json", "b.json"):
        assert check([str(run), "--repetitions", "1", "--json", str(tmp_path / name)]) == 0
        found.append({**json.loads((tmp_path / name).read_text()), "seconds": None, "lines": None})
    assert found[0] == found[1]


def test_checks_of_a_result_under_a_mask(result: FitResult) -> None:
    found = result.check(repetitions=2).to_dict()
    assert found["modalities"]["share"] is not None
    assert found["n_samples"] == (result.arrays.split == "train").sum()  # type: ignore[union-attr]
    assert result.status == "collapsed"
    assert "passes" not in {line["verdict"] for line in found["lines"]}
    assert found["verdict"] == "fails"


def test_diagnosis_of_a_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run), "--draws", "30", "--json", str(tmp_path / "d.json"), "--figures", str(tmp_path / "f")]
    assert diagnose(words) == 0
    found, printed = json.loads((tmp_path / "d.json").read_text()), capsys.readouterr().out
    assert {"k_hat", "loo", "held_out_log_likelihood", "predictive", "latent_information"} <= set(found)
    assert found["held_out_log_likelihood"]["n_draws"] == 30
    assert set(found["loo"]) == {"stress", "hardness"}
    assert {line["verdict"] for line in found["lines"]} <= VERDICTS
    assert next(line for line in found["lines"] if line["key"] == "restarts")["verdict"] == "skipped"
    assert "no estimate of generalisation" in " ".join(printed.split())
    figures = {path.name for path in (tmp_path / "f").iterdir()}
    assert figures == {"k_hat.png", "predictive_stress.png", "predictive_hardness.png"}


def test_folds_go_on_where_they_were(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run), "--folds", "2", "--draws", "10"]
    assert diagnose([*words, "--json", str(tmp_path / "one.json")]) == 0
    assert capsys.readouterr().err.count("ended") == 3  # two folds, and the note that says what Ctrl-C keeps
    first = json.loads((tmp_path / "one.json").read_text())["folds"]
    assert first["n"] == 2
    assert first["per_sample"] == pytest.approx(np.mean(first["by_fold"]), rel=0.2)
    (run / "folds" / "fold-1.json").unlink()
    assert diagnose([*words, "--jobs", "2", "--json", str(tmp_path / "two.json")]) == 0
    told = capsys.readouterr().err
    assert "fold 1 ended" in told
    assert "fold 0 ended" not in told
    assert json.loads((tmp_path / "two.json").read_text())["folds"] == first
    left_out = [json.loads((run / "folds" / f"fold-{k}.json").read_text())["samples"] for k in range(2)]
    assert sorted(left_out[0] + left_out[1]) == list(range(96))
    assert not {sample // 4 for sample in left_out[0]} & {sample // 4 for sample in left_out[1]}


def test_diagnosis_of_a_result(result: FitResult) -> None:
    found = result.diagnose(draws=20)
    assert "held_out_log_likelihood" in found.to_dict()
    assert result.status == "collapsed"
    assert "passes" not in {line.verdict for line in found.lines}
    assert found.verdict == "fails"


@pytest.mark.usefixtures("without_figures")
def test_restarts_are_compared(tmp_path: Path) -> None:
    ended = svi(*TINY, "--restarts", "2", "--restart_mode", "processes", "--jobs", "1", "--output_dir", tmp_path / "r")
    assert ended.status in (0, 3), ended.err
    words = [str(tmp_path / "r"), "--json", str(tmp_path / "d.json"), "--figures", str(tmp_path / "f")]
    assert diagnose(words) == 0
    found = json.loads((tmp_path / "d.json").read_text())
    assert set(found["r_hat"]) == {"log_weight", "log_likelihood image", "shares of the clusters"}
    assert found["restarts"]["n"] == 2
    assert (tmp_path / "f" / "rank_plots.png").exists()


@pytest.mark.parametrize("command", [check, diagnose])
def test_what_is_no_run_is_refused(command: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert callable(command)
    assert command([str(tmp_path)]) == 2
    assert "expected a run folder" in capsys.readouterr().err
    assert command([]) == 2
    assert "run: expected the folder of a finished run, got none" in capsys.readouterr().err
    assert command(["x", "--json", str(tmp_path)]) == 2
    assert "json: expected a file" in capsys.readouterr().err


def test_folds_and_jobs_are_checked(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diagnose([str(run), "--folds", "1"]) == 2
    assert "folds" in capsys.readouterr().err
    assert diagnose([str(run), "--jobs", "2"]) == 2
    assert "jobs: expected --folds with it" in capsys.readouterr().err
    assert diagnose([str(run), "--folds", "99"]) == 2
    assert "folds: expected 2 to 24, the number of groups, got 99" in capsys.readouterr().err
    assert check([str(run), "--repetitions", "0"]) == 2
    assert "repetitions" in capsys.readouterr().err
