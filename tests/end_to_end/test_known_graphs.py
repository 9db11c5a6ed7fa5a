"""What is known of the graph, from the command line to the files of a run: fixed edges, a designed node's effects."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml
from command import Outcome, contents, differences, svi

_SETTINGS = {
    "nodes": "dose=2,shape=2,hue=2",
    "pretraining.epochs": "2",
    "training.epochs": "2",
    "training.batch_size": "16",
    "training.learning_rate": "0.01",
    "graph.start_steps": "10",
    "graph.extra_steps": "2",
    "modality.spectrum.encoder.kind": "mlp",
    "modality.spectrum.encoder.sizes": "8",
    "modality.spectrum.decoder.sizes": "8",
    "modality.yield.encoder.sizes": "8",
    "modality.yield.decoder.sizes": "8",
    "read_out.n_init": "1",
    "distillation.epochs": "0",
}
TINY = [word for name, value in _SETTINGS.items() for word in (f"--{name}", value)]
# dose --> hue --> shape is known; so is that dose does not lead to shape
KNOWN = [
    *("--knowledge.require", "dose->hue,hue→shape", "--knowledge.forbid", "dose->shape"),
    *("--knowledge.designed", "dose", "--observe", "dose=dose_given", "--observe.use", "training"),
]
EFFECT = 2.0


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """120 samples in 60 plates; the dose was drawn for every plate, and moves the yield by 2."""
    rng = np.random.default_rng(0)
    plate = np.arange(120) // 2
    dose, shape, hue = rng.integers(0, 2, 60)[plate], rng.integers(0, 2, 120), rng.integers(0, 2, 120)
    spectrum = 4 * np.eye(8)[2 * shape + hue] + 0.2 * rng.normal(size=(120, 8))
    strength = EFFECT * dose + rng.normal(size=60)[plate] + 0.1 * rng.normal(size=120)
    strength[::9] = np.nan
    data = xr.Dataset(
        {
            "spectrum": (("sample", "wavelength"), spectrum),
            "yield": ("sample", strength, {"units": "g"}),
            "dose_given": ("sample", np.where(dose, "low", "high"), {"role": "label"}),
            "plate": ("sample", plate, {"role": "group"}),
        }
    )
    home = tmp_path_factory.mktemp("known")
    data.to_netcdf(home / "samples.nc", engine="h5netcdf")
    return home / "samples.nc"


@pytest.fixture(scope="module")
def ended(file: Path) -> Outcome:
    found = svi("--data", file, *TINY, *KNOWN, "--output_dir", file.parent / "run", "--quiet")
    assert found.status in (0, 3), found.err
    return found


@pytest.fixture(scope="module")
def run(file: Path, ended: Outcome) -> Path:
    return file.parent / "run"


def test_what_is_known_holds_in_everything_that_a_run_writes(file: Path, run: Path) -> None:
    graph = json.loads((run / "summary.json").read_text())["graph"]
    for strength in (np.array(graph["edge_strength"]), np.array(graph["adjacency"], dtype=float)):
        assert (strength[0, 2], strength[2, 1]) == (1, 1), "required"
        assert (strength[0, 1], strength[:, 0].max(), strength[1, 2]) == (0, 0, 0), "forbidden, designed, reversed"
    stored = xr.open_dataset(run / "posterior.nc", group="variational").load()
    np.testing.assert_array_equal(stored["edge_strength"], graph["edge_strength"])
    given = stored["responsibilities"].to_numpy().reshape(-1, 2, 4).sum(2)
    labels = xr.open_dataset(file, engine="h5netcdf")["dose_given"].to_numpy() == "low"
    split = xr.open_dataset(run / "posterior.nc", group="constant_data")["split"].to_numpy()
    levels = json.loads((run / "summary.json").read_text())["designed"]["dose"]["outcomes"]
    is_training = split == 0
    other = np.where(labels, levels.index("high"), levels.index("low"))
    assert (given[np.flatnonzero(is_training), other[is_training]] == 0).all(), "nothing of the outcome that was not"
    assert yaml.safe_load((run / "config.yaml").read_text())["knowledge"]["require"] == ["dose->hue", "hue→shape"]


def test_effects_of_a_designed_node_are_differences_of_means_with_plates_counted(run: Path, ended: Outcome) -> None:
    assert "Designed   dose, set by the experimenter" in ended.out
    found = json.loads((run / "summary.json").read_text())["designed"]["dose"]
    assert found["n_labelled"] == found["n_training"]
    effect = found["modalities"]["yield"]
    sign = 1.0 if found["outcomes"] == ["high", "low"] else -1.0
    (value,), (lower,), (upper,) = (effect[name][0] for name in ("difference", "lower", "upper"))
    assert abs(sign * value - EFFECT) < upper - lower, "about four standard errors"
    assert effect["p_value"] < 0.01
    assert sum(effect["n_independent"]) <= 60
    assert found["modalities"]["spectrum"]["p_value"] > 0.001, "it does nothing there"
    group = xr.open_dataset(run / "posterior.nc", group="designed").load()
    np.testing.assert_allclose(group["difference_dose_yield"], effect["difference"])
    assert group["mean_dose_spectrum"].dims == ("outcome_dose", "feature_spectrum")
    assert (run / "figures" / "designed_dose_yield.png").is_file()
    report = (run / "report.html").read_text()
    assert "Designed nodes" in report
    assert "Effect of a designed node" in report


def test_a_run_under_knowledge_goes_on_exactly(file: Path, run: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    svi("--data", file, *TINY, *KNOWN, "--output_dir", parts, "--quiet", "--stop_after", 3)
    svi("--resume", parts, "--quiet")
    assert differences(contents(run), contents(parts)) == []


@pytest.mark.usefixtures("without_figures")
def test_a_designed_node_that_nobody_observed_is_told(file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = svi("--data", file, *TINY, "--knowledge.designed", "dose", "--output_dir", run, "--quiet")
    assert "Warning: dose is designed, but not observed" in ended.out
    found = json.loads((run / "summary.json").read_text())["designed"]["dose"]
    assert (found["variable"], found["modalities"]) == (None, {})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--knowledge.require", "dose->hue,hue->dose"], "without a cycle, got dose->hue->dose"),
        (
            ["--knowledge.require", "dose->hue", "--knowledge.forbid", "dose->hue"],
            "got dose->hue; leave one of the two",
        ),
        (["--knowledge.tiers", "hue;shape;hue"], "expected every node in one tier at most, got 'hue' twice"),
        (["--knowledge.forbid", "dose->size"], "expected nodes among dose, shape, hue, got 'size'"),
    ],
)
def test_contradictions_end_before_anything_runs(file: Path, tmp_path: Path, flags: list[str], message: str) -> None:
    ended = svi("--data", file, *TINY, *flags, "--output_dir", tmp_path / "run")
    assert ended.status == 2
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
