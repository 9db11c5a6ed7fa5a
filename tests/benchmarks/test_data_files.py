"""Data sets as files: what is read back is what was there, and one vector holds all of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from data_files import as_dataset, main, of_one_vector, one_vector, samples, settings

from causalpima.inference.command_line.svi_parser import parse
from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.training.config import FitConfig, ModalityConfig, ModelConfig


def small() -> MultimodalData:
    """A curve of three positions, one of them not measured on the first sample, and an image of 2 x 2."""
    rng = np.random.default_rng(0)
    observed = np.ones((6, 3), dtype=bool)
    observed[0, 1] = False
    return MultimodalData(
        "small",
        {
            "curve": np.where(observed, rng.normal(5, 2, (6, 3)), 0).astype(np.float32),
            "image": rng.random((6, 2, 2, 1)).astype(np.float32),
        },
        {"curve": np.ones(6, dtype=bool), "image": np.array([True, True, False, True, True, True])},
        {"curve": "curve", "image": "image"},
        factors={"kind": np.array([0, 1, 0, 1, -1, 1]), "other": np.zeros(6, dtype=int)},
        factor_levels={"kind": ("a", "b"), "other": ("x",)},
        observed={"curve": observed},
        axes={"curve": Axis("strain", np.array([0.0, 1.0, 3.0]), "%")},
        units={"curve": "MPa"},
        groups=np.array([0, 0, 1, 1, 2, 2]),
    )


def config(scaling: str = "none") -> FitConfig:
    entries = {"curve": ModalityConfig(), "image": ModalityConfig()}
    return FitConfig({"N": 2}, model=ModelConfig(likelihood_scaling=scaling), modality=entries)  # type: ignore[arg-type]


def test_what_was_not_measured_is_nan_and_labels_are_chosen() -> None:
    found = as_dataset(small(), labels=["kind"])
    assert np.isnan(found["curve"].to_numpy()).sum() == 1
    assert np.isnan(found["image"].to_numpy()[2]).all()
    assert found["kind"].to_numpy().tolist() == ["a", "b", "a", "b", "", "b"]
    assert "other" not in found
    assert "other" in as_dataset(small())
    assert found["curve_0"].attrs["units"] == "%"
    assert found["specimen"].attrs["role"] == "group"


@pytest.mark.parametrize("scaling", ["none", "dimension"])
def test_one_vector_holds_standardised_modalities(scaling: str) -> None:
    data = small()
    found = one_vector(data, config(scaling))
    value, measured = found.modalities["all"], found.observed["all"]
    assert value.shape == measured.shape == (6, 7)
    assert measured.sum() == 6 * 7 - 1 - 4
    for name, columns in (("curve", slice(0, 3)), ("image", slice(3, 7))):
        seen = value[:, columns][measured[:, columns]]
        assert seen.mean() == pytest.approx(0, abs=1e-6)
        size = columns.stop - columns.start if scaling == "dimension" else 1
        assert seen.std() == pytest.approx(size**-0.5, abs=1e-6)
        raw = data.modalities[name].reshape(6, -1)[measured[:, columns]]
        np.testing.assert_allclose(np.corrcoef(raw, seen)[0, 1], 1, atol=1e-6)


def test_settings_of_one_vector_need_one_modality() -> None:
    found = of_one_vector(dataclasses.replace(config("dimension"), seed=3))
    assert list(found.modality) == ["all"]
    assert (found.model.likelihood_scaling, found.distillation.epochs) == ("none", 0)
    assert "seed" not in settings(found)


@pytest.mark.float32
@pytest.mark.parametrize("one", [False, True])
def test_a_data_set_is_fitted_from_its_files_as_from_its_name(tmp_path: Path, one: bool) -> None:
    file = tmp_path / "resin.nc"
    flags = ["--one_vector"] if one else []
    main(["--dataset", "resin_coupons", "--labels", "resin", "--file", str(file), *flags])
    read = parse(["--data", str(file), "--config", str(file.with_suffix(".yaml")), "--seed", "4"])
    data, config = samples("resin_coupons")
    assert read.config.seed == 4
    assert list(read.make_data().factors) == ["resin"]
    expected = of_one_vector(config) if one else config
    assert dataclasses.replace(read.config, seed=0) == expected
    if not one:
        found = read.make_data()
        for name, values in data.modalities.items():
            np.testing.assert_array_equal(found.modalities[name], values)
            np.testing.assert_array_equal(found.measured(name), data.measured(name))
    assert list(tmp_path.iterdir()) != []
    assert torch.get_default_dtype() == torch.float32


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match="dataset: expected one of mfeat, circles"):
        samples("nothing")
