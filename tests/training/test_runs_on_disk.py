"""Runs on samples that stay on disk: those in memory while one window holds them, exact in themselves beyond."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from test_run import same
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.predict import PredictionOptions, predict, read_samples
from causalpima.inference.data import tensors
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.data.stored import StoredArray
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder

WINDOW = 80 * 4 * (6 + 8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tiny_samples(300, gaps=True)
    curve = np.where(made.observed["curve"], made.modalities["curve"], np.nan)
    dims = {"spectrum": ("sample", "line"), "curve": ("sample", "position")}
    values = {"spectrum": made.modalities["spectrum"], "curve": curve}
    data = xr.Dataset({name: (dims[name], values[name]) for name in values}, {"position": np.arange(8.0)})
    data.to_netcdf(tmp_path / "tiny.nc", engine="h5netcdf")
    return tmp_path / "tiny.nc"


def on_disk(path: Path) -> MultimodalData:
    data = as_multimodal(path, ReadOptions(in_memory="no"))
    assert all(isinstance(values, StoredArray) for values in data.modalities.values())
    return data


def fitted(data: MultimodalData) -> FitResult:
    run = Run(data, settings())
    run.train()
    return run.finish()


def test_one_window_makes_the_same_run(path: Path) -> None:
    assert same(fitted(on_disk(path)), fitted(as_multimodal(path)))


def test_several_windows_are_reproduced_and_resumed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "_WINDOW_BYTES", WINDOW)
    expected = fitted(on_disk(path))
    assert same(fitted(on_disk(path)), expected)
    folder = RunFolder(path.parent / "run")
    folder.create(settings().to_dict())
    Run(on_disk(path), settings()).train(2, folder)
    run = Run(on_disk(path), settings())
    run.restore(folder)
    run.train(folder=folder)
    assert same(run.finish(), expected)
    monkeypatch.undo()
    assert not same(fitted(on_disk(path)), expected), "else there was only one window"


def test_predictions_are_those_in_memory(path: Path) -> None:
    run = rebuild_result(fitted(as_multimodal(path)))
    options = PredictionOptions(draws=5)
    kept = read_samples(run, path, ReadOptions(in_memory="no"))
    assert isinstance(kept.data.modalities["curve"], StoredArray)
    loaded = read_samples(run, path, ReadOptions(in_memory="yes"))
    xr.testing.assert_identical(predict(run, kept, options), predict(run, loaded, options))
