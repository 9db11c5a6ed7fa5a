"""A run, then its scores: from its own factors, from a table, with figures; bad input is one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from command import TINY, svi

from causalpima.inference.analyses.scores import read_labels
from causalpima.inference.evaluate import main
from causalpima.inference.fit import fit
from causalpima.inference.training.config import DecoderConfig, EncoderConfig, FitConfig, ModalityConfig, TrainingConfig

KEYS = {
    "cluster_accuracy",
    "nmi",
    "ari",
    "node_accuracy",
    "node_accuracy_worst",
    "random_labelling_baseline",
    "bayes_ceiling",
    "cpdag_shd",
    "disentanglement",
    "calibration",
    "graph",
    "held_out_log_likelihood",
    "variance_explained",
    "cross_modal",
}


@pytest.fixture(scope="module")
def circles_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "c"
    assert svi(
        *TINY, "--dataset", "circles_chain", "--nodes", "2,2,2", "--read_out.sizes", "9", "--output_dir", folder
    ).status in (0, 3)
    return folder


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two modalities that share a phase; its configuration names no data."""
    entry = ModalityConfig(EncoderConfig(sizes=(8,)), DecoderConfig(sizes=(8,)))
    training = TrainingConfig(epochs=4, batch_size=16, learning_rate=1e-2)
    config = FitConfig(nodes={"phase": 2}, training=training, modality={"stress": entry, "hardness": entry})
    folder = tmp_path_factory.mktemp("runs") / "own"
    fit(samples(), config=config).save(folder)
    return folder


def samples() -> xr.Dataset:
    rng = np.random.default_rng(0)
    phase = rng.integers(0, 2, 80)
    stress = np.linspace(0, 2, 8) * np.where(phase, 40.0, 25.0)[:, None] + rng.normal(0, 2, (80, 8))
    hardness = np.where(phase, 210.0, 150.0) + rng.normal(0, 10, 80)
    variables = {"stress": (("sample", "strain"), stress), "hardness": ("sample", hardness)}
    return xr.Dataset(variables, {"sample": [f"S{i}" for i in range(80)]})


def table(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_scores_of_a_data_set(circles_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(circles_run), "--json", str(tmp_path / "s.json"), "--figures", str(tmp_path / "figures")]
    assert main(words) == 0
    found, printed = json.loads((tmp_path / "s.json").read_text()), capsys.readouterr().out
    assert set(found) > KEYS
    summary = json.loads((circles_run / "summary.json").read_text())["evaluation"]
    for key in ("cluster_accuracy", "node_accuracy", "node_factor_accuracy", "calibration"):
        assert found[key] == summary[key]
    assert found["cpdag_shd"] == found["graph"]["exact_search"]["shd"]
    assert found["graph"]["true_cpdag"] == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert found["cross_modal"] == {}
    assert "graph against the truth" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["node_factors.png", "reliability.png"]
    assert {"outcomes_N1_image.png", "variance_explained.png", "node_factors.png", "reliability.png"} <= {
        path.name for path in (circles_run / "figures").iterdir()
    }


def test_scores_against_ones_own_labels(own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hardness = samples().hardness.to_numpy()
    rows = [f"S{i},{'hard' if hardness[i] > 180 else 'soft'}" for i in reversed(range(60))]
    labels = table(tmp_path / "labels.csv", "sample,phase", *rows)
    assert main([str(own_run), "--labels", str(labels), "--json", str(tmp_path / "s.json")]) == 0
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["n_samples"] == 60
    assert found["cluster_accuracy"] > 0.9
    assert found["factor_levels"] == {"phase": ["hard", "soft"]}
    assert found["graph"] is None
    assert "phase, by phase" in capsys.readouterr().out


def test_a_run_without_data_and_labels_says_so(own_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(own_run)]) == 0
    captured = capsys.readouterr()
    assert captured.err == "note: the run names no data; give labels of its samples with --labels\n"
    assert captured.out.startswith("No factor is known")
    assert "stress: variance explained by phase" in captured.out


def test_modalities_are_predicted_from_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples().to_netcdf(tmp_path / "samples.nc", engine="h5netcdf")
    quick = ["--pretraining.epochs", "2", "--training.epochs", "2", "--training.validation_fraction", "0.3"]
    run = tmp_path / "run"
    ended = svi("--data", tmp_path / "samples.nc", "--nodes", "phase=2", "--output_dir", run, *quick)
    assert ended.status in (0, 3), ended.err
    assert main([str(run), "--draws", "5", "--json", str(tmp_path / "s.json")]) == 0
    found = json.loads((tmp_path / "s.json").read_text())["cross_modal"]
    assert set(found) == {"stress", "hardness"}
    assert found["stress"]["n_samples"] == 24
    assert "stress from the other modalities: R²" in capsys.readouterr().out


def test_tables_are_matched_by_name_or_by_order(tmp_path: Path) -> None:
    named = read_labels(table(tmp_path / "a.csv", "sample;grade;heat", "b;10;x", "a;9;", "d;10;y"), 4, list("abcd"))
    assert named.factors["grade"].tolist() == [0, 1, -1, 1]
    assert named.levels == {"grade": ("9", "10"), "heat": ("x", "y")}
    assert named.factors["heat"].tolist() == [-1, 0, -1, 1]
    numbered = read_labels(table(tmp_path / "b.csv", "sample,grade", "2,u", "0,v"), 3)
    assert numbered.factors["grade"].tolist() == [1, -1, 0]
    ordered = read_labels(table(tmp_path / "c.csv", "grade", "u", "v", "u"), 3, list("abc"))
    assert ordered.factors["grade"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["grade", "a", "b"], "expected 80 rows as the run has samples, or a column sample, got 2 rows"),
        (["sample,grade", "S1,a", "X9,b"], "expected samples of the run, such as S0, got 'X9'"),
        (["sample,grade", "S1,a", "S1,b"], "expected one row per sample, got two of 'S1'"),
        (["sample,grade", "S1,a", "S2,a"], "grade: expected 2 to 200 different labels, got 1"),
        (["sample", "S1", "S2"], "expected a column of labels, got sample alone"),
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(
    own_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], message: str
) -> None:
    words = [str(own_run), "--labels", str(table(tmp_path / "labels.csv", *lines)), "--json", str(tmp_path / "s.json")]
    assert main(words) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("evaluate: error: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "s.json").exists()


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "expected a run folder" in capsys.readouterr().err
    assert main([]) == 2
    assert "run: expected the folder of a finished run, got none" in capsys.readouterr().err
    assert main(["x", "--draws", "0"]) == 2
    assert "draws" in capsys.readouterr().err
