"""Dimensions of new samples go by their names: they are put into the order of the run, and come back in their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.analyses.predict import predict, read_samples, write_predictions
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.fit import fit
from causalpima.inference.training.config import FitConfig, PretrainingConfig, TrainingConfig
from causalpima.inference.training.fitted_run import FittedRun, load_run

pytestmark = [pytest.mark.float32, pytest.mark.filterwarnings("ignore:The fit collapsed")]

N = 24


def images(**kinds: Any) -> xr.Dataset:
    rng = np.random.default_rng(0)
    spot = np.exp(-((np.arange(4)[:, None] - 3 * rng.integers(0, 2, N)[:, None, None]) ** 2))
    values = spot * np.ones((1, 1, 5)) + 0.1 * rng.normal(size=(N, 4, 5))
    colour = np.stack([values, 2 * values, -values], axis=-1) + 0.1 * rng.normal(size=(N, 4, 5, 3))
    return xr.Dataset(
        {
            "grey": (("sample", "y", "x"), values),
            "photo": (("sample", "band", "row", "column"), np.moveaxis(colour, -1, 1)),
            "genes": (("sample", "gene"), rng.normal(size=(N, 3))),
        },
        coords={"y": np.linspace(0, 3, 4), "gene": ["a", "b", "c"]},
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, without_figures: None) -> FittedRun:
    short = {"pretraining": PretrainingConfig(epochs=1), "training": TrainingConfig(epochs=1, batch_size=12)}
    result = fit(images(), config=FitConfig(nodes={"N": 2}, **short))  # type: ignore[arg-type]
    folder = tmp_path_factory.mktemp("runs") / "a"
    result.save(folder)
    return load_run(folder)


def test_names_and_orders_are_kept(fitted: FittedRun) -> None:
    data = as_multimodal(images())
    assert data.modalities["photo"].shape == (N, 4, 5, 3)
    assert data.dimensions["photo"].names == ("row", "column", "band")
    assert data.dimensions["photo"].source == ("band", "row", "column")
    assert fitted.modalities["grey"].dimensions == ("y", "x")
    assert fitted.modalities["grey"].coordinates == {"y": (0.0, 1.0, 2.0, 3.0)}
    assert fitted.modalities["genes"].coordinates == {"gene": ("a", "b", "c")}


@pytest.mark.parametrize("in_memory", ["yes", "no"])
def test_other_orders_are_the_same_samples(fitted: FittedRun, tmp_path: Path, in_memory: str) -> None:
    from causalpima.inference.data.roles import ReadOptions

    first = predict(fitted, read_samples(fitted, images()))
    turned = images().transpose("x", "sample", "y", "column", "band", "row", "gene")
    turned.to_netcdf(tmp_path / "turned.nc", engine="h5netcdf")
    samples = read_samples(fitted, tmp_path / "turned.nc", ReadOptions(in_memory=in_memory))  # type: ignore[arg-type]
    second = predict(fitted, samples)
    np.testing.assert_allclose(first.responsibilities, second.responsibilities, rtol=1e-5)
    assert second.grey_mean.dims == ("sample", "x", "y")
    assert second.photo_mean.dims == ("sample", "column", "band", "row")
    assert first.photo_mean.dims == ("sample", "band", "row", "column"), "the order of the file"
    for name in ("grey_mean", "photo_lower", "genes_std"):
        xr.testing.assert_allclose(first[name], second[name].transpose(*first[name].dims), rtol=1e-4)
    assert first.y.to_numpy().tolist() == [0, 1, 2, 3]
    assert first.gene.to_numpy().tolist() == ["a", "b", "c"]


def test_what_is_written_is_what_is_predicted(fitted: FittedRun, tmp_path: Path) -> None:
    samples = read_samples(fitted, images().drop_vars("photo"))
    whole = predict(fitted, samples)
    assert whole.photo_mean.dims == ("sample", "band", "row", "column"), "of the run, where the file has none"
    write_predictions(fitted, samples, tmp_path / "new.nc")
    with xr.open_dataset(tmp_path / "new.nc", engine="h5netcdf") as written:
        xr.testing.assert_identical(written.load(), whole)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda d: d.rename(x="z"), "grey: expected the dimensions y, x of the run, got y, z; give them these names"),
        (
            lambda d: d.assign_coords(y=[0.0, 1, 2, 9]),
            "grey: expected 3.0 at index 3 of y as in the run, got 9.0",
        ),
        (lambda d: d.isel(gene=[1, 0, 2]), "genes: expected 'a' at index 0 of gene as in the run, got 'b'"),
    ],
)
def test_other_names_and_places_are_refused(fitted: FittedRun, changed: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_samples(fitted, changed(images()))


def test_without_names_the_place_counts_and_is_told_where_it_may_be_wrong(fitted: FittedRun) -> None:
    content = images()
    plain = {str(name): values.to_numpy() for name, values in content.items()}
    samples = read_samples(fitted, plain)
    assert not [note for note in samples.notes if "no names" in note], "4 x 5 can be taken in one way only"
    np.testing.assert_allclose(
        predict(fitted, samples).responsibilities, predict(fitted, read_samples(fitted, content)).responsibilities
    )
