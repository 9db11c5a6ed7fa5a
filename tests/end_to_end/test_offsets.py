"""Values far from zero: float32 cannot hold what they vary by, the fit is that of the same values near zero."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from causalpima.inference import predict
from causalpima.inference.analyses.query_sampling import estimate
from causalpima.inference.analyses.scenarios import Scenario
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.data.tensors import Scale, fit_standardisation
from causalpima.inference.fit import fit
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    GraphConfig,
    ModalityConfig,
    PretrainingConfig,
    ReadOutConfig,
    TrainingConfig,
)
from causalpima.inference.training.fitted_run import load_run
from causalpima.inference.training.prepared_run import _modality, _plain_modality

OFFSET = 2.0**30
N = 48


def dataset(offset: float, first: float = 0.0) -> xr.Dataset:
    """Multiples of 2^-10, which float64 holds 2^30 away, too."""
    rng = np.random.default_rng(0)
    cell, time = np.arange(N) % 2, np.linspace(0, 1, 8)
    weight = rng.normal(0, 0.3, (N, 3)) + np.where(cell, 1.0, -1.0)[:, None]
    load = np.sin(3 * time * (cell[:, None] + 1)) + rng.normal(0, 0.1, (N, 8))
    weight, load = (np.round(values * 1024) / 1024 + offset for values in (weight, load))
    load[3], weight[5, 1] = np.nan, np.nan
    return xr.Dataset(
        {"weight": (("sample", "part"), weight), "load": (("sample", "time"), load, {"units": "N"})},
        {"time": ("time", time + first)},
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> tuple[Path, Path]:
    """Near zero and far from it."""
    entry = ModalityConfig(EncoderConfig(sizes=(6,)), DecoderConfig(sizes=(6,)))
    config = FitConfig(
        nodes={"kind": 2},
        pretraining=PretrainingConfig(epochs=5),
        training=TrainingConfig(epochs=3, batch_size=8, learning_rate=1e-2),
        graph=GraphConfig(start_steps=10, extra_steps=2),
        read_out=ReadOutConfig(n_init=1, sizes=(2,)),
        modality={"weight": entry, "load": entry},
    )
    near, far = (tmp_path_factory.mktemp("runs") / name for name in ("near", "far"))
    fit(dataset(0.0), config=config).save(near)
    fit(dataset(OFFSET, first=1.7e9), config=config).save(far)
    return near, far


def differ_by_offset(far: np.ndarray, near: np.ndarray) -> None:
    assert far.dtype == np.float64
    np.testing.assert_allclose(far - OFFSET, near, rtol=0, atol=1e-6)


def test_the_fit_is_the_same(runs: tuple[Path, Path]) -> None:
    near, far = (read_posterior(run / "posterior.nc") for run in runs)
    for group in ("posterior", "variational"):
        for name, values in near[group].data_vars.items():
            found, expected = far[group][str(name)].to_numpy(), values.to_numpy()
            if found.dtype == np.float64 != expected.dtype:
                differ_by_offset(found, expected)
            else:
                np.testing.assert_array_equal(found, expected, str(name))
    assert far["variational"]["decoded_load"].dtype == np.float64
    for name in ("weight", "load"):
        differ_by_offset(far["posterior_predictive"][name].to_numpy(), near["posterior_predictive"][name].to_numpy())
        observed = far["observed_data"][name]
        samples = observed[str(observed.dims[0])].to_numpy()
        np.testing.assert_array_equal(observed, dataset(OFFSET)[name].to_numpy()[samples])
    np.testing.assert_array_equal(far["variational"].position_load, np.linspace(0, 1, 8) + 1.7e9)


def test_predictions_of_one_sample(runs: tuple[Path, Path], tmp_path: Path) -> None:
    found = []
    for run, offset, first in zip(runs, (0.0, OFFSET), (0.0, 1.7e9), strict=True):
        dataset(offset, first).isel(sample=[7]).to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
        words = [str(run), "--data", str(tmp_path / "new.nc"), "--output", str(tmp_path / "out.nc"), "--force"]
        assert predict.main(words) == 0
        with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as opened:
            found.append(opened.load())
    near, far = found
    for name in ("responsibilities", "latent_loc", "latent_scale"):
        np.testing.assert_array_equal(far[name], near[name])
    for name in ("weight", "load"):
        for part in ("mean", "lower", "upper"):
            differ_by_offset(far[f"{name}_{part}"].to_numpy(), near[f"{name}_{part}"].to_numpy())
        np.testing.assert_allclose(far[f"{name}_std"], near[f"{name}_std"], rtol=1e-6)
        np.testing.assert_allclose(far[f"{name}_log_likelihood"], near[f"{name}_log_likelihood"], rtol=1e-5)
    np.testing.assert_array_equal(far.time, np.linspace(0, 1, 8) + 1.7e9)


def test_other_times_are_refused(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset(OFFSET, first=1.7e9 + 30).to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
    assert predict.main([str(runs[1]), "--data", str(tmp_path / "new.nc"), "--output", str(tmp_path / "out.nc")]) == 2
    assert "time: expected the positions time of 'load' in the run" in capsys.readouterr().err


def test_runs_of_before_have_no_offset(runs: tuple[Path, Path]) -> None:
    known = load_run(runs[0]).modalities["load"]
    plain = _plain_modality(known)
    del plain["standardisation"]["offset"]
    assert _modality(plain).standardisation == known.standardisation


ALL = np.ones(N, dtype=bool)


def test_values_on_disk_are_those_in_memory(tmp_path: Path) -> None:
    dataset(OFFSET).to_netcdf(tmp_path / "far.nc", engine="h5netcdf")
    read = [as_multimodal(tmp_path / "far.nc", ReadOptions(in_memory=where)) for where in ("yes", "no")]
    for name in ("weight", "load"):
        memory, disk = (data.modalities[name] for data in read)
        assert memory.dtype == disk.dtype == np.float64
        np.testing.assert_array_equal(np.asarray(disk), memory)
        scales = [fit_standardisation(data, name, ALL, Scale()) for data in read]
        assert scales[0] == scales[1]
        assert scales[0].offset == OFFSET


def test_answers_are_those_near_zero() -> None:
    rng = np.random.default_rng(0)
    cells, draws = rng.dirichlet([1, 1], 2), rng.dirichlet([1, 1], (2, 50))
    near, far = (estimate(np.array([[0.5], [2.0]]) + offset, Scenario("do", cells, draws)) for offset in (0.0, 2.0**40))
    assert not near.is_identified.any()
    assert not far.is_identified.any()
    for found, expected in zip(far[:4], near[:4], strict=True):
        np.testing.assert_allclose(found - 2.0**40, expected, rtol=0, atol=1e-3)


def far_data(values: np.ndarray) -> MultimodalData:
    return as_multimodal({"x": values})


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_float64_where_float32_loses_what_varies(dtype: type) -> None:
    values: np.ndarray = (100 * np.random.default_rng(0).normal(size=(N, 2))).astype(dtype)
    for offset, held in ((0, np.float32), (10**6, np.float32), (10**8, np.float64), (10**12, np.float64)):
        data = far_data(values + dtype(offset))
        assert data.modalities["x"].dtype == held
        assert (fit_standardisation(data, "x", ALL, Scale()).offset is None) == (held is np.float32)


@pytest.mark.parametrize("scale", [Scale(), Scale(robust=True), Scale(False), Scale(transform="log")])
def test_every_scale_keeps_what_varies(scale: Scale) -> None:
    noise = np.random.default_rng(0).normal(size=(N, 2))
    data = far_data(1e9 + noise)
    found = fit_standardisation(data, "x", ALL, scale)
    single = found.apply(data.modalities["x"]).astype(np.float32)
    assert np.corrcoef(single.reshape(-1), noise.reshape(-1))[0, 1] > 0.999999
    np.testing.assert_allclose(found.invert(single), data.modalities["x"], rtol=0, atol=1e-4)


def test_codes_and_counts_have_no_offset() -> None:
    data = dataclasses.replace(far_data(1e9 + np.arange(N)[:, None]))
    assert fit_standardisation(data, "x", ALL, Scale(False, has_offset=False)).offset == 0.0
