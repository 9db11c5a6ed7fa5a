"""Data that cannot be fitted: one line that names the variable, and the file if it is one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.data.reading import as_multimodal, position_axis
from causalpima.inference.data.roles import ReadOptions

NAN, INF = float("nan"), float("inf")
N = 12


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(2.0, 3.0, shape)


def coupons(**variables: Any) -> xr.Dataset:
    """A good file; what is given goes in, or comes out where it is None."""
    good: dict[str, Any] = {
        "load": (("sample", "strain"), numbers(N, 5), {"units": "MPa"}),
        "mass": ("sample", numbers(N)),
        "alloy": ("sample", np.arange(N) % 3, {"role": "label"}),
    }
    kept = {name: values for name, values in (good | variables).items() if values is not None}
    return xr.Dataset(kept, {"strain": np.linspace(0, 1, 5)})


def with_one(value: float, at: Any = (3, 1)) -> Any:
    values = numbers(N, 5)
    values[at] = value
    return (("sample", "strain"), values)


CASES: list[tuple[xr.Dataset, dict[str, Any], str]] = [
    (coupons(mass=("sample", list("abcdefghijkl"))), {}, "mass: expected real numbers, got"),
    (
        coupons(load=with_one(INF)),
        {},
        "load: expected finite values, got infinity in 1 of 12 samples, first .*3",
    ),
    (coupons(load=(("sample", "strain"), np.full((N, 5), NAN))), {}, "load: expected at least one present .*all NaN"),
    (coupons(mass=("sample", np.full(N, 7.5))), {}, "mass: expected values that vary, got 7.5 everywhere"),
    (coupons(load=with_one(1e30)), {}, r"load: expected values on one scale, got 1e\+30 in sample 3 where nearly all"),
    (coupons(load=with_one(-1e12)), {}, r"load: expected values on one scale, got -1e\+12 in sample 3"),
    (
        coupons(elastic=(("sample", "quantity"), numbers(N, 2) * [1e-3, 1e9])),
        {},
        r"elastic: expected elements on one scale, got standard deviations of .* \(element 0\) and .* \(element 1\)",
    ),
    (coupons(), {"observe": ("aloy",)}, "observe: expected variables of .*, got 'aloy'; there is alloy"),
    (coupons(load=with_one(1e39)), {}, "load: expected values that fit float32"),
    (coupons().isel(sample=[0]), {}, "load: expected at least 2 samples, got 1"),
    (coupons().isel(sample=[]), {}, r"load: expected at least 2 samples with values, .*got shape \(0, 5\)"),
    (coupons(mass=("other", numbers(9))), {}, r"mass: expected the dimension 'sample', got \('other',\); drop"),
    (
        coupons(alloy=("sample", np.where(np.arange(N) < 2, NAN, 1.0), {"role": "group"})),
        {},
        "none for 2 of 12",
    ),
    (coupons(alloy=("sample", ["a", ""] * 6, {"role": "group"})), {}, "alloy: .*got none for 6 of 12"),
    (coupons(alloy=("sample", [""] * N, {"role": "label"})), {}, "alloy: .*got none for 12 of 12"),
    (coupons(alloy=("sample", numbers(N), {"role": "group"})), {}, "alloy: expected a label per sample, .*got float64"),
    (coupons(load_mask=("strain", np.ones(5))), {}, r"load_mask: expected the dimension 'sample'"),
    (coupons(load_mask=(("sample", "k"), np.ones((N, 4)))), {}, r"load_mask: expected the shape \(12,\) or \(12, 5\)"),
    (coupons(mass_mask=("sample", np.arange(N))), {}, r"mass_mask: expected 1 \(measured\) and 0 .*got other values"),
    (coupons(mass_mask=("sample", ["y"] * N)), {}, "mass_mask: expected 1 .*got type"),
    (coupons(mass_mask=("sample", np.full(N, NAN))), {}, "mass_mask: expected 1 .*got other values"),
    (coupons(mass_mask=("sample", np.zeros(N))), {}, "mass: expected at least one present sample, got none"),
    (
        coupons(lod_mask=("sample", np.ones(N))),
        {},
        "lod_mask: expected a modality 'lod' .*got none of that name",
    ),
    (
        coupons(alloy_mask=("sample", np.ones(N))),
        {},
        "alloy_mask: expected a modality 'alloy' .*got one that is",
    ),
    (
        coupons(load=with_one(2.0)).assign_coords(strain=[0, 1, NAN, 3, 4]),
        {},
        "strain: expected finite positions",
    ),
    (coupons(), {"modalities": ("lod",)}, "modalities: expected variables of .*, got 'lod'; there is load"),
    (coupons(), {"labels": ("resin",)}, "labels: expected variables of .*, got 'resin'; there is "),
    (coupons(), {"groups": ("aloy",)}, "groups: expected variables of .*, got 'aloy'; there is alloy"),
    (coupons(), {"covariates": ("load",)}, r"load: expected a label per sample, .*of shape \(12, 5\)"),
    (coupons(), {"kinds": {"alloy": "curve"}}, r"kinds: expected names of modalities \(load, mass\), got 'alloy'"),
    (coupons(), {"kinds": {"load": "sound"}}, "load: expected the kind image, curve, vector, got 'sound'"),
    (
        coupons(),
        {"sample_dim": "part"},
        "sample_dim: expected a dimension .*, got 'part'; there is sample",
    ),
    (coupons(load=None, mass=None), {}, "expected at least one modality, got none"),
    (coupons(), {"labels": ("load", "mass")}, "load: expected a label per sample|expected at least one modality"),
]


@pytest.mark.parametrize(("data", "options", "match"), CASES, ids=range(len(CASES)))
def test_refused_by_name(tmp_path: Path, data: xr.Dataset, options: dict[str, Any], match: str) -> None:
    as_multimodal(coupons())
    with pytest.raises(ValueError, match=match):
        as_multimodal(data, ReadOptions(**options))
    data.to_netcdf(tmp_path / "coupons.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=match) as error:
        as_multimodal(tmp_path / "coupons.nc", ReadOptions(**options))
    assert "\n" not in str(error.value)
    assert "coupons" in str(error.value)


def test_complex_numbers_in_a_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "coupons.npz", load=numbers(N, 3) + 1j)
    with pytest.raises(ValueError, match=r"coupons\.npz: load: expected real numbers, got complex128"):
        as_multimodal(tmp_path / "coupons.npz")


@pytest.mark.parametrize("name", ["alloy", "sample"])
def test_names_that_no_file_of_results_can_hold(tmp_path: Path, name: str) -> None:
    arrays: dict[str, Any] = {"load": numbers(N, 3), name: np.array(["a\0b", "c"] * 6)}
    np.savez(tmp_path / "coupons.npz", **arrays)
    labels = ("alloy",) if name == "alloy" else ()
    with pytest.raises(ValueError, match=rf"coupons\.npz: {name}: expected names without the character NUL, got 'a"):
        as_multimodal(tmp_path / "coupons.npz", ReadOptions(labels=labels))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"modalities": ("a", "b", "a")}, "^modalities: expected every name once, got 'a' twice$"),
        ({"modalities": ("a",), "labels": ("a",)}, "^modalities: expected names without another role, got a also as"),
        ({"labels": 3}, "^labels: expected names of variables, .*got 3$"),
        ({"labels": ("a", "")}, "^labels: expected names of variables"),
    ],
)
def test_options_that_contradict_themselves(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ReadOptions(**options)


def test_options_that_do_not_go_with_the_data() -> None:
    with pytest.raises(ValueError, match=r"^options: expected none for MultimodalData"):
        as_multimodal(as_multimodal(numbers(N, 2)), ReadOptions(labels=("a",)))
    with pytest.raises(ValueError, match=r"^sample_dim: expected none for arrays"):
        as_multimodal({"a": numbers(N, 2)}, ReadOptions(sample_dim="part"))
    with pytest.raises(ValueError, match=r"^alloy: expected 12 samples, as many as the modalities have, got 3"):
        as_multimodal({"a": numbers(N, 2), "alloy": [1, 2, 1]}, ReadOptions(labels=("alloy",)))
    with pytest.raises(ValueError, match=r"^sample: expected one name per sample, \[12\], got shape \(2,\)"):
        as_multimodal({"a": numbers(N, 2), "sample": ["p", "q"]})


def test_zarr_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"zarr.*got none; pip install zarr$"):
        as_multimodal(tmp_path / "coupons.zarr")


def test_zarr_folders_that_are_none(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    with pytest.raises(ValueError, match=r"readable \.zarr file, got .*No such file or directory"):
        as_multimodal(tmp_path / "coupons.zarr")
    (tmp_path / "coupons.zarr").mkdir()
    with pytest.raises(ValueError, match=r"readable \.zarr file, got ") as error:
        as_multimodal(tmp_path / "coupons.zarr")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("many", [False, True])
def test_wide_but_connected_scales_are_taken(many: bool) -> None:
    """Decades that follow one another, a background of zeros, a few small exact zeros: no outliers."""
    decades = 10.0 ** np.linspace(-8, 8, N * 40).reshape(N, 40)
    sparse = np.zeros((N, 40))
    sparse[0, 0] = 1e9
    tails = np.exp(-(np.linspace(0, 9, 40) ** 2)) * (1 + np.arange(N)[:, None])
    as_multimodal({"decades": np.tile(decades, (1, 1 + 3 * many)), "sparse": sparse, "tails": tails})


def good() -> MultimodalData:
    values = numbers(N, 3)
    values[0, 1] = NAN
    return as_multimodal({"load": values, "mass": numbers(N)}, ReadOptions(kinds={"load": "curve"}))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"observed": {"x": np.ones((N, 3), bool)}}, "observed: expected names of modalities of data, got 'x'"),
        ({"observed": {"load": np.ones((N, 3))}}, r"load: expected observed as bool \(12, 3\), got float64"),
        ({"observed": {"load": np.ones((N, 2), bool)}}, r"load: expected observed as bool \(12, 3\), got bool"),
        (
            {"observed": {"load": np.arange(N)[:, None] * [1, 1, 1] > 0}},
            "load: expected observed elements in",
        ),
        (
            {"observed": {"load": np.tile([True, False, True], (N, 1))}},
            "load: expected zeros where nothing",
        ),
        ({"units": {"x": "N"}}, "units: expected names of modalities of data, got 'x'"),
        (
            {"axes": {"mass": Axis("t", np.zeros(1))}},
            "mass: expected an axis for curves only",
        ),
        (
            {"axes": {"load": Axis("t", np.zeros(2))}},
            r"t: expected the positions of 'load' as .* \[3\], got",
        ),
        ({"axes": {"load": Axis("t", np.array(list("abc")))}}, r"t: expected the positions of 'load' as numbers"),
        ({"axes": {"load": Axis("t", np.array([0, INF, 1]))}}, "t: expected finite positions of 'load'"),
        ({"groups": np.zeros(3, int)}, r"groups: expected one integer code per sample, \[12\], got int64 \(3,\)"),
        ({"groups": np.zeros(N)}, r"groups: expected one integer code per sample, \[12\], got float64"),
        ({"covariates": {"c": np.zeros(N, int)}}, "c: expected codes from 0 to -1, .*got 0 to 0"),
        ({"covariates": {"c": np.zeros(3, int)}}, r"c: expected one integer code per sample, \[12\], got int64 \(3,\)"),
        ({"sample_names": np.array(["a"])}, r"sample: expected one name per sample, \[12\], got shape \(1,\)"),
    ],
)
def test_multimodal_data_that_break_the_contract(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        as_multimodal(dataclasses.replace(good(), **change))


def test_only_curves_have_axes() -> None:
    image = xr.DataArray(numbers(2, 3, 4), dims=("sample", "y", "x"), coords={"x": range(4)})
    assert position_axis(image, "sample") is None
