"""A run, then the command on new samples of another file; bad input is one line and leaves nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.fit import fit
from causalpima.inference.predict import main
from causalpima.inference.training.config import (
    DecoderConfig,
    DistillationConfig,
    EncoderConfig,
    FitConfig,
    ModalityConfig,
    PretrainingConfig,
    TrainingConfig,
)


def dataset(n: int, seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    phase, strain = rng.integers(0, 2, n), np.linspace(0, 2, 8)
    stress = np.minimum(40 * strain, np.where(phase, 55.0, 30.0)[:, None]) + rng.normal(0, 2, (n, 8))
    hardness = np.where(phase, 210.0, 150.0) + rng.normal(0, 15, n)
    return xr.Dataset(
        {
            "stress": (("sample", "strain"), stress, {"units": "MPa"}),
            "hardness": ("sample", hardness, {"units": "HV"}),
            "phase": ("sample", np.where(phase, "martensite", "ferrite"), {"role": "label"}),
        },
        coords={"strain": ("strain", strain, {"units": "%"}), "sample": [f"S{seed}-{i:03d}" for i in range(n)]},
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    entry = ModalityConfig(EncoderConfig(sizes=(8,)), DecoderConfig(sizes=(8,)))
    config = FitConfig(
        nodes={"phase": 2},
        pretraining=PretrainingConfig(epochs=10),
        training=TrainingConfig(epochs=10, batch_size=16, learning_rate=1e-2, modality_dropout=0.3),
        distillation=DistillationConfig(epochs=20),
        modality={"stress": entry, "hardness": entry},
    )
    folder = tmp_path_factory.mktemp("runs") / "a"
    fit(dataset(120, 0), config=config).save(folder)
    return folder


def test_new_samples_that_lack_a_modality(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = dataset(30, 1)
    truth = new.stress.to_numpy()
    new.drop_vars("stress").to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
    output, summary = tmp_path / "out.nc", tmp_path / "out.json"
    words = [str(run), "--data", str(tmp_path / "new.nc"), "--output", str(output), "--json", str(summary)]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "30 samples; with stress 0, hardness 30" in captured.out
    assert captured.err == "note: absent in all samples: stress\n"
    with xr.open_dataset(output, engine="h5netcdf") as found:
        assert list(found.sample.to_numpy()[:2]) == ["S1-000", "S1-001"]
        error = np.sqrt(np.mean((found.stress_mean.to_numpy() - truth) ** 2))
        assert error < 0.8 * np.sqrt(np.mean((truth.mean(0) - truth) ** 2))
        assert np.isnan(found.stress_log_likelihood).all()
        assert list(found.phase.to_numpy()) == list(new.phase.to_numpy())
    told = json.loads(summary.read_text())
    assert told["present"] == {"stress": 0, "hardness": 30}
    assert len(told["log_likelihood"]["least"]) == 5


def refused(words: list[str], capsys: pytest.CaptureFixture[str], *parts: str) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("predict: error: ")
    assert captured.err.count("\n") == 1
    assert all(part in captured.err for part in parts), captured.err


def test_bad_input_is_one_line_and_leaves_nothing(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = dataset(5, 2)
    new.to_netcdf(tmp_path / "good.nc", engine="h5netcdf")
    new.isel(strain=slice(5)).to_netcdf(tmp_path / "short.nc", engine="h5netcdf")
    (tmp_path / "torn.nc").write_bytes((tmp_path / "good.nc").read_bytes()[:500])
    output = str(tmp_path / "out.nc")

    def words(data: str, folder: Path = run) -> list[str]:
        return [str(folder), "--data", str(tmp_path / data), "--output", output]

    refused(words("none.nc"), capsys, "none.nc", "No such file")
    refused(words("torn.nc"), capsys, "torn.nc")
    refused(words("short.nc"), capsys, "short.nc: stress: expected samples of shape (8,)")
    refused(words("good.nc", tmp_path), capsys, "expected a run folder")
    refused([*words("good.nc")[:4], str(tmp_path / "no" / "out.nc")], capsys, "output: expected a file in a folder")
    assert not (tmp_path / "out.nc").exists()
    assert not list(tmp_path.glob(".*partial*"))
