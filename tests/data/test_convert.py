"""What people hand to `fit` becomes `MultimodalData`, or one line that says what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import DataLike, as_multimodal

NAN, INF = float("nan"), float("inf")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(2.0, 3.0, shape)


def refused(data: DataLike, match: str) -> None:
    """It is refused in one line that matches."""
    with pytest.raises(ValueError, match=match) as caught:
        as_multimodal(data)
    assert "\n" not in str(caught.value)


def samples() -> MultimodalData:
    return as_multimodal({"a": numbers(5, 3), "b": np.where(np.arange(5)[:, None] == 2, NAN, numbers(5, 2))})


# ---------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("given_shape", "shape", "kind"),
    [
        ((5,), (5, 1), "vector"),
        ((5, 3), (5, 3), "vector"),
        ((5, 40), (5, 40), "vector"),
        ((5, 6, 7), (5, 6, 7, 1), "image"),
        ((5, 6, 7, 3), (5, 6, 7, 3), "image"),
        ((5, 6, 7, 9), (5, 6, 7, 9), "image"),
        ((5, 3, 6, 7), (5, 6, 7, 3), "image"),
        ((5, 3, 6, 4), (5, 3, 6, 4), "image"),
    ],
)
def test_shape_says_what_an_array_is(given_shape: tuple[int, ...], shape: tuple[int, ...], kind: str) -> None:
    array = numbers(*given_shape)
    data = as_multimodal(array)
    assert list(data.modalities) == ["x"]
    assert data.modalities["x"].shape == shape
    assert data.modalities["x"].dtype == np.float32
    assert data.modalities["x"].flags.c_contiguous
    assert data.kinds == {"x": kind}
    assert data.present["x"].all()
    assert data.n_samples == 5
    if given_shape == (5, 3, 6, 7):
        array = array.transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(data.modalities["x"], array.astype(np.float32).reshape(shape))


def test_mapping_has_a_modality_per_name() -> None:
    data = as_multimodal({"pixels": numbers(4, 2, 2), "load": [[1, 2], [3, 4], [5, 6], [7, 9]]})
    assert list(data.modalities) == ["pixels", "load"]
    assert data.modalities["load"].tolist() == [[1, 2], [3, 4], [5, 6], [7, 9]]
    assert data.kinds == {"pixels": "image", "load": "vector"}


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4", np.int8, np.int64, np.uint16, bool])
def test_real_numbers_of_every_type_become_float32(dtype: Any) -> None:
    array = (numbers(6, 2) > 2.0).astype(dtype)
    values = as_multimodal(array).modalities["x"]
    assert values.dtype == np.dtype("float32")
    np.testing.assert_array_equal(values, array.astype(float))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32])
def test_tensors_are_arrays(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(dtype)
    assert as_multimodal(tensor).modalities["x"].tolist() == [[1, 2], [3, 4]]
    assert as_multimodal({"y": tensor.double().requires_grad_()}).modalities["y"].tolist() == [[1, 2], [3, 4]]


def test_later_changes_of_the_array_do_not_matter() -> None:
    array = numbers(4, 2).astype(np.float32)
    data = as_multimodal(array)
    before = data.modalities["x"].copy()
    array += 1.0
    np.testing.assert_array_equal(data.modalities["x"], before)


@given(absent=st.sets(st.integers(0, 7), max_size=6), shape=st.sampled_from([(8,), (8, 3), (8, 2, 3), (8, 2, 3, 3)]))
def test_rows_of_nan_are_absent_samples(absent: set[int], shape: tuple[int, ...]) -> None:
    array = numbers(*shape)
    array[list(absent)] = NAN
    data = as_multimodal(array)
    assert set(np.flatnonzero(~data.present["x"])) == absent
    rows = data.modalities["x"].reshape(8, -1)
    assert not rows[list(absent)].any()
    kept = data.present["x"]
    np.testing.assert_array_equal(rows[kept], array[kept].reshape(kept.sum(), -1).astype(np.float32))


def test_masked_rows_are_absent_samples() -> None:
    array = np.ma.masked_array([[1, 2], [3, 4], [5, 6]], mask=[[False, False], [True, True], [False, False]])
    data = as_multimodal(array)
    assert data.present["x"].tolist() == [True, False, True]
    assert data.modalities["x"].tolist() == [[1, 2], [0, 0], [5, 6]]
    gaps = as_multimodal(np.ma.masked_array([[1, 2], [3, 4]], mask=[[False, True], [False, False]]))
    assert gaps.observed["x"].tolist() == [[True, False], [True, True]]


def test_scale_of_the_values_is_left_for_standardising() -> None:
    for scale in (1e-30, 1e30):
        values = as_multimodal(scale * numbers(5, 2)).modalities["x"]
        np.testing.assert_allclose(values, scale * numbers(5, 2), rtol=1e-6)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ({"load": np.array([["a", "b"], ["c", "d"]])}, "load: expected real numbers, got <U1; convert.*--labels load"),
        ({"load": np.array([[1, None], [2, 3]])}, "load: expected real numbers, got object"),
        ({"load": numbers(3, 2) + 1j}, "load: expected real numbers, got complex128"),
        ({"load": torch.ones(3, 2, dtype=torch.complex64).conj()}, "load: expected an array of numbers"),
        ({"load": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")}, "load: expected real numbers"),
        ({"load": [[1, 2], [3]]}, r"load: expected an array of numbers \[sample, ...\], got list that makes none"),
        ({"load": torch.eye(3).to_sparse()}, "load: expected an array of numbers"),
        ({"load": None}, "load: expected real numbers, got object"),
        ({"load": 3.0}, r"load: expected at least 2 samples with values, \[sample, ...\], got shape \(\)"),
        ({"load": numbers(0, 2)}, r"load: expected at least 2 samples with values, .*\(0, 2\)"),
        ({"load": numbers(4, 0)}, r"load: expected at least 2 samples with values, .*\(4, 0\)"),
        ({"load": numbers(1, 4)}, "load: expected at least 2 samples, got 1"),
        ({"load": numbers(3, 2, 2, 2, 2)}, r"load: expected .*got shape \(3, 2, 2, 2, 2\).*reshape"),
        (
            {"image": numbers(4, 2, 2), "load": numbers(5, 2)},
            "load: expected 4 samples as 'image' has, got 5; .*row of NaN",
        ),
        ({"load": [[1.0, 4.0], [2.0, INF]]}, "load: .*infinity in 1 of 2 samples, first in sample 1; correct them"),
        ({"load": [[1.0, 4.0], [NAN, INF]]}, "load: .*infinity in 1 of 2 samples, first in sample 1; correct them"),
        ({"image": numbers(3, 2, 2), "load": np.full((3, 2), NAN)}, "load: .*at least one present sample, got none"),
        ({"load": np.full((3, 2), 0.1)}, "load: expected values that vary, got 0.1 everywhere; leave"),
        ({"load": [[2.0, 2.0], [NAN, NAN], [2.0, 2.0]]}, "load: expected values that vary, got 2 everywhere"),
        ({"load": 1e39 * numbers(3, 2)}, "load: expected values that fit float32 .*larger unit"),
        ({"load": 1e-60 * numbers(3, 2)}, "load: expected a standard deviation that fits float32 .*smaller unit"),
        ({"load": 0.3 + 5e-17 * np.arange(6)}, "load: expected values that vary, got 0.3 everywhere"),
        ({}, r"data: expected at least one modality, got none; give an array"),
        ({"a.b": numbers(3, 2)}, "names of modalities without .* got 'a.b'; rename"),
        ({"a/b": numbers(3, 2)}, "names of modalities without .* got 'a/b'; rename"),
        ({"": numbers(3, 2)}, "names of modalities .* got ''; rename"),
        ({"values": numbers(3, 2)}, "names of modalities .* got 'values'; rename"),
        ({3: numbers(3, 2)}, "names of modalities .* got 3; rename"),
        ([numbers(3, 2)], "data: expected MultimodalData, an array, .*got list; numpy.asarray"),
        (None, "data: expected MultimodalData, .*got NoneType"),
    ],
)
def test_unusable_arrays_are_refused_by_name(data: Any, match: str) -> None:
    refused(data, match)


@pytest.mark.parametrize("name", ["force-displacement", "stress [MPa]", "Größe", "x"])
def test_names_that_torch_takes_are_taken(name: str) -> None:
    torch.nn.ModuleDict({name: torch.nn.Identity()})
    assert list(as_multimodal({name: numbers(3, 2)}).modalities) == [name]


# ------------------------------------------------------------------------------------------- MultimodalData


def test_multimodal_data_are_returned_as_they_are() -> None:
    data = dataclasses.replace(
        samples(),
        factors={"kind": np.array([0, 1, 1, 0, 1])},
        factor_levels={"kind": ("octet", "gyroid")},
        measurements={"size": numbers(5)},
    )
    assert as_multimodal(data) is data


def _values(name: str, values: np.ndarray) -> Callable[[MultimodalData], MultimodalData]:
    return lambda data: dataclasses.replace(data, modalities={**data.modalities, name: values})


def _present(name: str, present: np.ndarray) -> Callable[[MultimodalData], MultimodalData]:
    return lambda data: dataclasses.replace(data, present={**data.present, name: present})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (_values("a", np.arange(15).reshape(5, 3)), r"a: expected float32 or float64 \[sample, element\] .*got int64"),
        (_values("a", numbers(5, 3, 2).astype("f4")), r"a: expected float32 or float64 \[sample, element\]"),
        (_values("b", numbers(4, 2).astype("f4")), "b: expected 5 samples as 'a' has, got 4"),
        (_values("a", np.full((5, 3), NAN, "f4")), "a: expected finite values where measured, got NaN or infinity"),
        (_values("b", numbers(5, 2).astype("f4")), "b: expected zeros in the rows of absent samples"),
        (_values("a", np.ones((5, 3), "f4")), "a: expected values that vary, got 1 everywhere"),
        (_present("a", np.ones(5)), r"a: expected present as bool \[5\], got float64"),
        (_present("a", np.ones(4, bool)), r"a: expected present as bool \[5\], got bool \(4,\)"),
        (_present("a", np.zeros(5, bool)), "a: expected at least one present sample, got none"),
        (_present("c", np.ones(5, bool)), r"present: expected an entry for \['a', 'b'\].*got \['a', 'b', 'c'\]"),
        (lambda data: dataclasses.replace(data, kinds={"a": "vector"}), r"kinds: expected an entry for"),
        (
            lambda data: dataclasses.replace(data, kinds={"a": "sound", "b": "vector"}),
            "a: expected the kind image, curve, vector, got 'sound'",
        ),
        (
            lambda data: dataclasses.replace(data, factors={"f": np.zeros(5)}, factor_levels={"f": ("u",)}),
            r"f: expected one integer code per sample, \[5\], got float64",
        ),
        (
            lambda data: dataclasses.replace(data, factors={"f": np.arange(5)}, factor_levels={"f": ("u", "v")}),
            "f: expected codes from 0 to 1, .*got 0 to 4",
        ),
        (
            lambda data: dataclasses.replace(data, measurements={"m": numbers(5, 2)}),
            r"m: expected one number per sample, \[5\], got shape \(5, 2\)",
        ),
    ],
)
def test_multimodal_data_that_break_the_contract_are_refused(
    change: Callable[[MultimodalData], MultimodalData], match: str
) -> None:
    refused(change(samples()), match)


# --------------------------------------------------------------------------------------------------- xarray


def dataset() -> xr.Dataset:
    return xr.Dataset(
        {
            "picture": (("height", "sample", "width"), numbers(4, 6, 5)),
            "load": (("sample", "strain"), numbers(6, 9), {"kind": "curve", "units": "N"}),
            "mass": ("sample", numbers(6)),
            "lattice": ("sample", ["octet", "gyroid", "octet", "octet", "gyroid", "octet"], {"role": "label"}),
            "batch": ("sample", [7, 3, 3, 7, 11, 3], {"role": "label"}),
        }
    )


def check_dataset(data: MultimodalData) -> None:
    assert {name: values.shape for name, values in data.modalities.items()} == {
        "picture": (6, 4, 5, 1),
        "load": (6, 9),
        "mass": (6, 1),
    }
    assert data.kinds == {"picture": "image", "load": "curve", "mass": "vector"}
    np.testing.assert_array_equal(data.modalities["picture"][..., 0], numbers(4, 6, 5).transpose(1, 0, 2).astype("f4"))
    assert data.factor_levels == {"lattice": ("gyroid", "octet"), "batch": ("3", "7", "11")}
    assert data.factors["lattice"].tolist() == [1, 0, 1, 1, 0, 1]
    assert data.factors["batch"].tolist() == [1, 0, 0, 1, 2, 0]


def test_dataset_has_a_modality_per_variable_and_factors_where_they_are_labels() -> None:
    check_dataset(as_multimodal(dataset()))
    check_dataset(as_multimodal(dataset().set_coords("lattice")))


def test_first_dimension_of_the_first_variable_counts_the_samples_unless_one_is_called_so() -> None:
    data = as_multimodal(dataset().transpose("sample", ...).rename(sample="part"))
    check_dataset(data)
    named = xr.Dataset({"load": (("strain", "sample"), numbers(4, 3))})
    assert as_multimodal(named).modalities["load"].shape == (3, 4)
    assert as_multimodal(named.rename(sample="part")).modalities["load"].shape == (4, 3)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (xr.Dataset(), "data: expected a variable .* per modality, got none"),
        (xr.Dataset({"version": 3}), "data: expected a variable .* per modality, got none"),
        (
            dataset().assign(grid=("strain", np.arange(9.0))),
            r"grid: expected the dimension 'sample', got \('strain',\)",
        ),
        (dataset().assign(size=("sample", numbers(6), {"role": "label"})), "size: expected a label .*got float64"),
        (
            dataset().assign(size=("sample", np.array(["a", None] * 3, object), {"role": "group"})),
            "size: expected a group for every sample, got none for 3 of 6, first sample 1; give",
        ),
        (
            dataset().assign(size=("strain", np.arange(9), {"role": "label"})),
            "size: expected the dimension 'sample'",
        ),
        (
            dataset().assign(size=("sample", np.arange(6), {"role": "labels"})),
            "size: .*got 'labels'",
        ),
        (dataset().assign(load=dataset()["load"].assign_attrs(kind="sound")), "load: expected the kind .*got 'sound'"),
        (
            dataset().assign(picture=dataset()["picture"].assign_attrs(kind="curve")),
            r"picture: expected .*got shape \(6, 4, 5\) for kind 'curve'; reshape",
        ),
        (dataset().assign(name=("sample", list("abcdef"))), "name: expected real numbers, got <U1"),
        (dataset()[["lattice"]], "data: expected at least one modality, got none"),
    ],
)
def test_unusable_datasets_are_refused_by_name(data: xr.Dataset, match: str) -> None:
    refused(data, match)


# ---------------------------------------------------------------------------------------------------- files


def test_npz_file_is_read_as_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "toy.NPZ"
    with path.open("wb") as file:
        np.savez_compressed(file, a=numbers(5, 3), b=numbers(5, 2, 2))
    expected = as_multimodal({"a": numbers(5, 3), "b": numbers(5, 2, 2)})
    for data in (as_multimodal(path), as_multimodal(str(path))):
        assert data.name == "toy"
        assert data.kinds == expected.kinds
        for name, values in expected.modalities.items():
            np.testing.assert_array_equal(data.modalities[name], values)


def test_netcdf_file_is_read_as_a_dataset_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "lattices.nc"
    for _ in range(2):
        dataset().to_netcdf(path, engine="h5netcdf")
        data = as_multimodal(path)
        assert data.name == "lattices"
        check_dataset(data)
    path.unlink()
    check_dataset(data)


@pytest.mark.parametrize("suffix", ["npz", "nc"])
def test_missing_truncated_and_foreign_files_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"toy.{suffix}"
    refused(path, rf"data: expected a readable \.{suffix} file, got .*No such file or directory\); check the path")
    if suffix == "nc":
        dataset().to_netcdf(path, engine="h5netcdf")
    else:
        np.savez(path, a=numbers(50, 3), b=numbers(50, 4))
    content = path.read_bytes()
    as_multimodal(path)
    for part in (content[: len(content) // 2], content[:-5] if suffix == "npz" else content[:500], b"", b"hello\n"):
        path.write_bytes(part)
        refused(path, rf"data: expected a readable \.{suffix} file, got .*; check the path, or write the file again")
    path.unlink()
    path.mkdir()
    refused(path, rf"data: expected a readable \.{suffix} file, got .*")


def test_npz_file_with_a_damaged_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "toy.npz"
    np.savez(path, a=numbers(50, 3))
    content = bytearray(path.read_bytes())
    content[400] ^= 0xFF
    path.write_bytes(content)
    refused(path, r"data: expected a readable \.npz file, got .*CRC")


def test_files_that_hold_no_samples_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "object.npz", a=np.array([{}, 1], dtype=object))
    refused(tmp_path / "object.npz", r"data: expected a readable \.npz file, got .*Object arrays cannot be loaded")
    np.savez(tmp_path / "empty.npz")
    refused(tmp_path / "empty.npz", "empty: expected at least one modality, got none")
    np.save(tmp_path / "bare.npy", numbers(3, 2))
    (tmp_path / "bare.npy").rename(tmp_path / "bare.npz")
    refused(
        tmp_path / "bare.npz", "data: expected a readable .npz file, got .*one bare array; write it with numpy.savez"
    )


@pytest.mark.parametrize("name", ["circles", "table.csv", "array.npy", ""])
def test_other_paths_are_refused(name: str) -> None:
    refused(name, r"data: expected the path of a \.nc, \.npz or \.zarr file, got '.*'; save the arrays as one")
