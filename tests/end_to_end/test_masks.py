"""A file of samples, a mask on the command line, and a mask in a file of settings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml
from command import contents, differences, svi

from causalpima.inference.predict import main as predict

_SETTINGS = {
    "nodes": "shape=2,hue=2",
    "pretraining.epochs": "4",
    "training.epochs": "3",
    "training.batch_size": "16",
    "training.learning_rate": "0.01",
    "graph.start_steps": "10",
    "graph.extra_steps": "2",
    "modality.image.encoder.sizes": "8",
    "modality.image.decoder.sizes": "8",
    "modality.spectrum.encoder.kind": "mlp",
    "modality.spectrum.encoder.sizes": "8",
    "modality.spectrum.decoder.sizes": "8",
}
TINY = [word for name, value in _SETTINGS.items() for word in (f"--{name}", value)]
pytestmark = pytest.mark.usefixtures("without_figures")
MASK = ["--mask", "image=shape,hue", "spectrum=hue"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """120 samples: pictures of shape and hue, spectra of hue alone, of which some are missing."""
    rng = np.random.default_rng(0)
    shape, hue = rng.integers(0, 2, 120), rng.integers(0, 2, 120)
    image = np.zeros((120, 4, 4)) + 2 * hue[:, None, None]
    image[:, :2] += 3 * shape[:, None, None]
    spectrum = 4 * np.eye(6)[1 + 3 * hue] + 0.2 * rng.normal(size=(120, 6))
    spectrum[::9] = np.nan
    data = xr.Dataset(
        {
            "image": (("sample", "y", "x"), image + 0.2 * rng.normal(size=image.shape)),
            "spectrum": (("sample", "wavelength"), spectrum),
            "true_shape": ("sample", np.where(shape, "round", "square"), {"role": "label"}),
        }
    )
    data.to_netcdf(tmp_path / "samples.nc", engine="h5netcdf")
    return tmp_path / "samples.nc"


def test_a_mask_from_the_command_line_to_predictions(file: Path, tmp_path: Path) -> None:
    """Also: settings of the folder repeat the run to the bit."""
    run, again, output = tmp_path / "a", tmp_path / "b", tmp_path / "out.nc"
    ended = svi("--data", file, *MASK, *TINY, "--output_dir", run, "--quiet")
    assert ended.status in (0, 3), ended.err
    assert yaml.safe_load((run / "config.yaml").read_text())["mask"] == {"image": ["shape", "hue"], "spectrum": ["hue"]}
    assert json.loads((run / "summary.json").read_text())["nodes"].keys() == {"shape", "hue"}
    repeated = svi("--config", run / "config.yaml", "--output_dir", again, "--quiet")
    assert repeated.status == ended.status, repeated.err
    assert differences(contents(run), contents(again)) == []
    assert svi("--resume", run).out.startswith(f"{run} is complete")
    with xr.open_dataset(file, engine="h5netcdf") as samples:
        samples.load().drop_vars("image").to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
    assert predict([str(run), "--data", str(tmp_path / "new.nc"), "--output", str(output)]) == 0
    with xr.open_dataset(output, engine="h5netcdf") as found:
        assert found.sizes["latent"] == 4
        assert bool(np.isfinite(found.image_mean).all())


def test_a_mask_in_a_file_of_settings_is_the_same(file: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(yaml.safe_dump({"mask": {"image": ["shape", "hue"], "spectrum": ["hue"]}}))
    short = ["--stop_after", "1", "--quiet"]
    assert svi("--data", file, *MASK, *TINY, "--output_dir", tmp_path / "a", *short).status == 0
    ended = svi("--data", file, "--config", settings, *TINY, "--output_dir", tmp_path / "b", *short)
    assert ended.status == 0, ended.err
    assert differences(contents_of(tmp_path / "a"), contents_of(tmp_path / "b")) == []


def contents_of(folder: Path) -> dict[str, object]:
    metrics = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {"config": (folder / "config.yaml").read_text(), "objective": [line["objective"] for line in metrics]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--mask", "image=shape", "spectrum=shape"], "mask: expected every node in the sight of a modality, got none"),
        (["--mask", "image=shape,hue"], "mask: expected the nodes that each of image, spectrum sees"),
        (["--mask", "image=shape,size", "spectrum=hue"], "mask: expected nodes among shape, hue for image, got size"),
        (["--mask", "image"], "mask: expected MODALITY=NODE,NODE, for example"),
        (["--mask"], "mask: expected a value after --mask, got none"),
        ([*MASK, "--distillation.epochs", "5"], "distillation.epochs: expected 0 with a mask, got 5; each modality"),
        ([*MASK, "--guide.prior_expert", "true"], "guide.prior_expert: expected false with a mask, got true; each"),
        ([*MASK, "--training.modality_dropout", "0.2"], "training.modality_dropout: expected 0 with a mask, got 0.2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_refused_in_one_line(file: Path, tmp_path: Path, words: list[str], message: str) -> None:
    ended = svi("--data", file, *words, *TINY, "--output_dir", tmp_path / "run")
    assert ended.status == 2
    assert ended.err.startswith(f"svi: error: {message}")
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "run").exists()
