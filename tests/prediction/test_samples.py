"""What new samples may look like, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from small_runs import POSITIONS, random_run, samples

from causalpima.inference.analyses.predict import PredictionOptions, predict, read_samples, write_predictions
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.training.config import GuideConfig
from causalpima.models.batch import Standardisation

LEVELS = {"batch": ("x", "y")}


def changed(**changes: Any) -> MultimodalData:
    return samples(**changes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            changed(modalities={"curve": np.ones((6, 5), dtype=np.float32)}, axes={}),
            r"curve: expected samples of shape \(4,\)",
        ),
        (
            changed(modalities={"curve": np.full((6, 4), 1e30, dtype=np.float32)}),
            r"curve: expected values within 1e\+06 standard deviations of those of the run, got 1e\+30 in sample 1",
        ),
        (changed(units={"curve": "kPa"}), "curve: expected the unit MPa of the run, got kPa; convert"),
        (
            changed(axes={"curve": Axis("strain", POSITIONS, "%")}),
            "strain: expected the positions of 'curve' in mm as in the run, got %",
        ),
        (
            changed(axes={"curve": Axis("x", POSITIONS + 0.1, "mm")}),
            "x: expected the positions strain of 'curve' in the run, 0 at index 0, got 0.1",
        ),
        (
            changed(covariates={"batch": np.arange(6) % 2}, covariate_levels={"batch": ("x", "z")}),
            r"batch: expected levels that the run was fitted with \(x, y\), got z",
        ),
        (
            changed(present={"curve": np.arange(6) > 3, "vector": np.arange(6) > 2}),
            "new: expected one of curve, vector in every sample, got none in 3 of 6, first in sample 0",
        ),
    ],
)
def test_samples_that_do_not_fit_are_refused(data: MultimodalData, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_to_run(data, random_run(levels=LEVELS))


def test_positions_far_from_zero_are_told_apart_by_their_range() -> None:
    run = random_run()
    far = dataclasses.replace(run.modalities["curve"], positions=torch.as_tensor(POSITIONS + 5000.0))
    description = dataclasses.replace(run.description, modalities={**run.modalities, "curve": far})
    run = dataclasses.replace(run, description=description)
    fit_to_run(changed(axes={"curve": Axis("x", POSITIONS + 5000.0, "mm")}), run)
    with pytest.raises(ValueError, match="expected the positions strain of 'curve' in the run, 5000 at index 0"):
        fit_to_run(changed(axes={"curve": Axis("x", POSITIONS + 5000.01, "mm")}), run)


def test_arrays_are_read_as_the_run_knows_them() -> None:
    run = random_run(levels=LEVELS)
    batch = np.array(["x", "y", "x"])
    arrays = {"vector": np.ones((3, 3)), "curve": np.ones((3, 4)), "batch": batch, "note": np.array(["a", "b", "c"])}
    dataset = xr.Dataset({name: (("sample", name + "_axis")[: x.ndim], x) for name, x in arrays.items()})
    for data in (arrays, dataset):
        read = read_samples(run, data)
        assert read.covariates is not None, "the covariate of the run has its name, and needs no role"
        np.testing.assert_array_equal(read.covariates, [[1, 0], [0, 1], [1, 0]])
        assert read.notes == ("left out, since the run does not know them: note",)
    turned = dataset.rename(sample="s").transpose("curve_axis", ...)
    assert read_samples(run, turned, ReadOptions(sample_dim="s")).n_samples == 3


def test_values_outside_the_support_are_refused() -> None:
    data = samples(4)
    with pytest.raises(ValueError, match="curve: expected zeros and ones for likelihood bernoulli"):
        fit_to_run(data, random_run(decoder={"likelihood": "bernoulli"}))
    codes = dataclasses.replace(data, modalities={**data.modalities, "curve": np.full((4, 4), 3, dtype=np.float32)})
    with pytest.raises(ValueError, match="curve: expected codes below 3, those of the run, got 3"):
        fit_to_run(codes, random_run(decoder={"likelihood": "categorical"}))
    negative = dataclasses.replace(data, modalities={**data.modalities, "curve": -np.ones((4, 4), dtype=np.float32)})
    with pytest.raises(ValueError, match="curve: expected positive values, whose logarithm the run takes, got -1"):
        fit_to_run(negative, random_run(standardisation=Standardisation(0.0, 1.0, "log")))


def test_all_covariates_or_none() -> None:
    fitted = random_run(levels={"batch": ("x", "y"), "plate": ("p",)})
    one = samples(covariates={"batch": np.zeros(6, dtype=int)}, covariate_levels={"batch": ("y",)})
    with pytest.raises(ValueError, match="plate: expected this covariate next to batch, got none"):
        fit_to_run(one, fitted)
    assert "no batch, plate: the average over the training samples is used" in fit_to_run(samples(), fitted).notes


def test_one_sample_and_constants_are_enough() -> None:
    fitted = random_run()
    found = predict(fitted, read_samples(fitted, {"vector": np.full((1, 3), 5.0)}))
    assert found.sizes["sample"] == 1
    assert np.isfinite(found.curve_mean).all()
    with pytest.raises(ValueError, match="seed: expected"):
        PredictionOptions(seed=-1)


def test_a_sample_does_not_depend_on_the_others() -> None:
    fitted, data = random_run(decoder={"per_cell": True}), samples(5)
    whole = predict(fitted, fit_to_run(data, fitted))
    alone = {name: values[3:4] for name, values in data.modalities.items()}
    single = predict(fitted, read_samples(fitted, alone))
    for name in whole.data_vars:
        assert single[name][0].to_numpy() == pytest.approx(whole[name][3].to_numpy(), rel=1e-4, abs=1e-5)


def test_the_seed_determines_everything() -> None:
    fitted, data = random_run(decoder={"likelihood": "poisson"}), samples(counts=True)
    first, again, other = (predict(fitted, fit_to_run(data, fitted), PredictionOptions(seed=s)) for s in (1, 1, 2))
    assert first.identical(again)
    assert not np.array_equal(first.latent_loc, other.curve_mean)
    assert not np.array_equal(first.curve_mean, other.curve_mean)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fitted, data = random_run(), fit_to_run(samples(7), random_run())
    whole = predict(fitted, data)
    monkeypatch.setattr("causalpima.inference.analyses.predict._ELEMENTS_AT_ONCE", 2 * 100 * 4)
    in_blocks = predict(fitted, data)
    xr.testing.assert_allclose(whole, in_blocks, rtol=1e-4)
    evidence = write_predictions(fitted, data, tmp_path / "new.nc")
    with xr.open_dataset(tmp_path / "new.nc", engine="h5netcdf") as written:
        xr.testing.assert_identical(written.load(), in_blocks)
    assert np.array_equal(evidence, whole.log_likelihood) or evidence == pytest.approx(whole.log_likelihood.to_numpy())


def test_names_units_and_labels_are_carried_through() -> None:
    fitted = random_run(levels=LEVELS)
    data = samples(
        3,
        factors={"phase": np.array([1, 0, 1])},
        factor_levels={"phase": ("hard", "soft")},
        covariates={"batch": np.array([0, 0, 1])},
        covariate_levels={"batch": ("x", "y")},
        sample_names=np.array(["a", "b", "c"]),
    )
    found = predict(fitted, fit_to_run(data, fitted))
    assert list(found.sample.to_numpy()) == ["a", "b", "c"]
    assert list(found.cell.to_numpy()) == ["0,0", "0,1", "1,0", "1,1"]
    assert found.strain.to_numpy() == pytest.approx(POSITIONS)
    assert found.strain.attrs["units"] == "mm"
    assert all(found[f"curve_{part}"].attrs["units"] == "MPa" for part in ("mean", "std", "lower", "upper"))
    assert list(found.phase.to_numpy()) == ["soft", "hard", "soft"]
    assert (found.phase.attrs["role"], found.batch.attrs["role"]) == ("label", "covariate")
    assert list(found.batch.to_numpy()) == ["x", "x", "y"]
    assert found.attrs == {"fitted_to": "small", "draws": 100, "seed": 0, "interval": 0.9, "causalpima_format": 1}


def test_a_file_may_hold_more_and_less(tmp_path: Path) -> None:
    fitted = random_run()
    content = xr.Dataset(
        {
            "vector": (("sample", "element"), 5 + np.ones((3, 3))),
            "nonsense": ("sample", np.array(["a", "b", "c"])),
            "tag": ("sample", np.array(["a", "b", "b"])),
        }
    )
    content.to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
    found = read_samples(fitted, tmp_path / "new.nc", ReadOptions(labels=("tag",)))
    assert found.present["curve"].sum() == 0
    assert "absent in all samples: curve" in found.notes
    assert any(note.startswith("the run learned neither by distillation nor") for note in found.notes)
    assert list(predict(fitted, found).tag.to_numpy()) == ["a", "b", "b"]
    np.savez(tmp_path / "new.npz", curve=np.ones((2, 4)))
    assert read_samples(fitted, tmp_path / "new.npz").present["curve"].all()
    np.savez(tmp_path / "other.npz", x=np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"other.npz: expected a variable of the run \(curve, vector\), got x"):
        read_samples(fitted, tmp_path / "other.npz")


def test_unknown_modalities_are_noted_and_gaps_too() -> None:
    data = samples(3)
    observed = np.ones((3, 4), dtype=bool) & data.present["curve"][:, None]
    observed[2, 0] = False
    more = {**data.modalities, "extra": np.ones((3, 1), dtype=np.float32)}
    more["curve"] = np.where(observed, more["curve"], 0).astype(np.float32)
    everywhere = {**data.present, "extra": np.ones(3, dtype=bool)}
    kinds = {**data.kinds, "extra": "vector"}
    odd = dataclasses.replace(data, modalities=more, present=everywhere, kinds=kinds, observed={"curve": observed})
    notes = fit_to_run(odd, random_run()).notes
    assert "left out, since the run does not know them: extra" in notes
    assert any("encoders see zeros in their place: curve" in note for note in notes)


def test_samples_without_any_modality_need_the_prior_expert() -> None:
    nothing = {name: np.zeros(6, dtype=bool) for name in ("curve", "vector")}
    blank = {name: np.zeros_like(values) for name, values in samples().modalities.items()}
    data = samples(present=nothing, modalities=blank)
    fitted = random_run(guide=GuideConfig(prior_expert=True))
    taken = fit_to_run(data, fitted)
    assert taken.notes[0].startswith("6 of 6 samples have no modality of the run")
    found = predict(fitted, taken, PredictionOptions(20_000))
    prior = fitted.model.graph.log_joint().detach().exp().reshape(-1).numpy()
    assert found.responsibilities[0].to_numpy() == pytest.approx(prior, abs=4 * 0.5 / np.sqrt(20_000))
