"""What a variable is, what of it was measured, where and in which unit: from datasets, mappings and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions

NAN = float("nan")
N = 6


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(2.0, 3.0, shape)


def specimens() -> xr.Dataset:
    """Every role, an axis, units, names, gaps by NaN in `load` and by a mask in `picture`."""
    load = numbers(N, 4)
    load[1, 2:] = NAN
    load[4] = NAN
    picture_mask = np.ones((5, N, 3), dtype=np.int8)
    picture_mask[0, 3, 1] = 0
    picture_mask[:, 5] = 0
    return xr.Dataset(
        {
            "load": (("sample", "strain"), load, {"units": "MPa", "long_name": "stress"}),
            "picture": (("sample", "height", "width"), numbers(N, 5, 3)),
            "picture_mask": (("height", "sample", "width"), picture_mask),
            "mass": ("sample", numbers(N), {"units": "1"}),
            "mass_mask": ("sample", [True, True, False, True, True, True]),
            "alloy": ("sample", ["b", "a", "a", "b", "c", "a"], {"role": "label"}),
            "specimen": ("sample", [3, 3, 1, 1, 2, 2], {"role": "group"}),
            "machine": ("sample", ["new", "old"] * 3, {"role": "covariate"}),
            "version": 3,
        },
        coords={
            "sample": [f"s{i}" for i in range(N)],
            "strain": ("strain", [0.0, 0.1, 0.2, 0.4], {"units": "%"}),
            "operator": ("sample", list("abcabc")),
        },
    )


def check_specimens(data: MultimodalData) -> None:
    assert set(data.modalities) == {"load", "picture", "mass"}
    assert data.kinds == {"load": "curve", "picture": "image", "mass": "vector"}
    assert data.units == {"load": "MPa"}
    assert list(data.axes) == ["load"]
    axis = data.axis("load")
    assert (axis.name, axis.unit, axis.values.tolist()) == ("strain", "%", [0.0, 0.1, 0.2, 0.4])
    assert data.factors["alloy"].tolist() == [1, 0, 0, 1, 2, 0]
    assert data.factor_levels == {"alloy": ("a", "b", "c")}
    assert data.covariates["machine"].tolist() == [0, 1, 0, 1, 0, 1]
    assert data.covariate_levels == {"machine": ("new", "old")}
    assert data.groups is not None
    assert [data.groups.tolist().index(code) for code in data.groups] == [0, 0, 2, 2, 4, 4]
    assert data.sample_names is not None
    assert data.sample_names.tolist() == ["s0", "s1", "s2", "s3", "s4", "s5"]
    check_gaps(data)


def check_gaps(data: MultimodalData) -> None:
    assert set(data.observed) == {"load", "picture"}
    assert data.present["load"].tolist() == [True] * 4 + [False, True]
    assert data.present["picture"].tolist() == [True] * 5 + [False]
    assert data.present["mass"].tolist() == [True, True, False, True, True, True]
    missing = np.argwhere(~data.observed["load"]).tolist()
    assert missing == [[1, 2], [1, 3], *([4, i] for i in range(4))]
    assert np.argwhere(~data.observed["picture"][:5]).tolist() == [[3, 0, 1, 0]]
    for name, observed in data.observed.items():
        assert not data.modalities[name][~observed].any()
        assert data.modalities[name][observed].all()


def test_roles_units_axes_names_and_gaps_of_a_dataset() -> None:
    check_specimens(as_multimodal(specimens()))


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_files_keep_all_of_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"specimens.{suffix}"
    if suffix == "nc":
        specimens().to_netcdf(path, engine="h5netcdf")
    else:
        pytest.importorskip("zarr")
        specimens().to_zarr(path, zarr_format=2)
    data = as_multimodal(path)
    check_specimens(data)
    assert data.name == "specimens"


def test_npz_with_masks_names_and_roles_by_options(tmp_path: Path) -> None:
    whole = specimens()
    arrays: dict[str, Any] = {str(name): whole[name].to_numpy() for name in ("load", "mass", "mass_mask", "picture")}
    arrays |= {str(name): whole[name].to_numpy().astype("U4") for name in ("alloy", "machine", "sample")}
    arrays["picture_mask"] = whole["picture_mask"].transpose("sample", ...).to_numpy()
    np.savez(tmp_path / "specimens.npz", specimen=whole["specimen"].to_numpy(), **arrays)
    options = ReadOptions(labels=("alloy",), groups=("specimen",), covariates=("machine",), kinds={"load": "curve"})
    data = as_multimodal(tmp_path / "specimens.npz", options)
    assert set(data.modalities) == {"load", "mass", "picture"}
    assert data.kinds["load"] == "curve"
    assert data.axis("load").values.tolist() == [0, 1, 2, 3]
    assert data.factors["alloy"].tolist() == [1, 0, 0, 1, 2, 0]
    assert data.sample_names is not None
    assert data.sample_names[5] == "s5"
    check_gaps(data)


# -------------------------------------------------------------------------------------------------- options


def test_options_pick_modalities_and_override_roles() -> None:
    options = ReadOptions(
        modalities=("mass", "load"), labels=("machine", "operator"), covariates=("alloy",), kinds={"load": "vector"}
    )
    data = as_multimodal(specimens(), options)
    assert list(data.modalities) == ["load", "mass"]
    assert data.kinds == {"load": "vector", "mass": "vector"}
    assert data.axes == {}
    assert not data.present["mass"][2]
    assert list(data.factors) == ["machine", "operator"]
    assert list(data.covariates) == ["alloy"]
    assert data.groups is not None


def test_a_variable_may_be_label_and_group_and_covariate() -> None:
    options = ReadOptions(labels=("specimen",), groups=("specimen", "machine"), covariates=("machine",))
    data = as_multimodal(specimens(), options)
    assert list(data.factors) == ["alloy", "specimen"]
    assert list(data.covariates) == ["machine"]


def test_a_mask_can_be_a_modality_of_its_own() -> None:
    shapes = (numbers(N, 4, 4) > 2).astype(float)
    data = xr.Dataset({"pore_mask": (("sample", "height", "width"), shapes, {"role": "modality"})})
    assert as_multimodal(data).kinds == {"pore_mask": "image"}
    assert list(as_multimodal({"pore_mask": shapes}, ReadOptions(modalities=("pore_mask",))).modalities) == [
        "pore_mask"
    ]


def test_another_dimension_may_count_the_samples() -> None:
    data = xr.Dataset({"load": (("strain", "part"), numbers(4, 3)), "mass": ("part", numbers(3))})
    assert as_multimodal(data, ReadOptions(sample_dim="part")).modalities["load"].shape == (3, 4)


@pytest.mark.parametrize("order", [("sample", "channel", "y", "x"), ("channel", "y", "sample", "x")])
def test_a_dimension_called_channel_is_one(order: tuple[str, ...]) -> None:
    values = xr.DataArray(numbers(N, 5, 4, 9), dims=("sample", "y", "x", "channel"))
    read = as_multimodal(xr.Dataset({"image": values.transpose(*order)})).modalities["image"]
    np.testing.assert_array_equal(read, values.to_numpy().astype("f4"))


def test_masks_of_images_follow_their_channels() -> None:
    mask = np.ones((N, 3, 5, 7), dtype=bool)
    mask[2, 1, 4, 6] = False
    data = as_multimodal({"image": numbers(N, 3, 5, 7), "image_mask": mask})
    assert np.argwhere(~data.observed["image"]).tolist() == [[2, 4, 6, 1]]


# ----------------------------------------------------------------------------------------------------- gaps


@given(
    nan=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=12),
    masked=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=12),
)
def test_an_element_counts_where_it_is_a_number_and_the_mask_has_it(
    nan: list[tuple[int, int]], masked: list[tuple[int, int]]
) -> None:
    values, mask = numbers(8, 4), np.ones((8, 4), dtype=np.int8)
    expected = np.ones((8, 4), dtype=bool)
    for place in nan:
        values[place], expected[place] = NAN, False
    for place in masked:
        mask[place], expected[place] = 0, False
    data = as_multimodal({"load": values, "load_mask": mask})
    np.testing.assert_array_equal(data.measured("load"), expected)
    np.testing.assert_array_equal(data.present["load"], expected.any(1))
    assert ("load" in data.observed) == bool((expected.any(1) & ~expected.all(1)).any())
    np.testing.assert_array_equal(data.modalities["load"], np.where(expected, values, 0).astype("f4"))


def test_what_a_mask_takes_out_may_be_anything() -> None:
    values = numbers(N, 3)
    values[0] = [np.inf, 1e300, NAN]
    mask = np.ones(N)
    mask[0] = 0
    data = as_multimodal({"load": values, "load_mask": mask})
    assert data.present["load"].tolist() == [False] + [True] * 5
    assert data.observed == {}


def test_an_element_that_no_sample_has_is_fine() -> None:
    values = numbers(N, 3)
    values[:, 1] = NAN
    assert not as_multimodal(values).observed["x"][:, 1].any()


# ----------------------------------------------------------------------------------------------------- axes


@pytest.mark.parametrize(
    ("positions", "values", "unit"),
    [
        (np.array([3, 4, 6, 9]), [3, 4, 6, 9], "h"),
        (np.array(["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-05"], "M8[ns]"), [0, 86400, 172800, 345600], "s"),
        (np.array([0, 500, 1000, 1500], "m8[ms]").astype("m8[ns]"), [0, 0.5, 1, 1.5], "s"),
    ],
)
def test_positions_are_numbers(positions: np.ndarray, values: list[float], unit: str) -> None:
    data = xr.Dataset({"load": (("sample", "t"), numbers(N, 4))}, {"t": ("t", positions, {"units": "h"})})
    axis = as_multimodal(data).axis("load")
    assert (axis.name, axis.values.tolist(), axis.unit) == ("t", values, unit)


def test_durations_in_files_stay_in_their_unit(tmp_path: Path) -> None:
    data = xr.Dataset(
        {"load": (("sample", "t"), numbers(N, 4), {"units": "days"})},
        {"t": ("t", np.arange(4.0), {"units": "seconds"})},
    )
    data.to_netcdf(tmp_path / "slow.nc", engine="h5netcdf")
    read = as_multimodal(tmp_path / "slow.nc")
    assert (read.axis("load").values.tolist(), read.axis("load").unit) == ([0, 1, 2, 3], "seconds")
    assert read.units == {"load": "days"}


def test_without_numbers_on_its_axis_it_is_a_vector() -> None:
    data = xr.Dataset({"load": (("sample", "gene"), numbers(N, 4))}, {"gene": list("abcd")})
    assert as_multimodal(data).kinds == {"load": "vector"}
