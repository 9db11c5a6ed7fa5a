"""Gaps, ranges and packing that a file declares; xarray's own decoding is the oracle where it knows the rule."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr

from causalpima.inference.data.formats import read_file
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions

N = 8
IN_MEMORY: tuple[Literal["yes", "no"], ...] = ("yes", "no")
FORMS = ("netcdf4", "offset64", "zarr3")
FILLER = 9.969209968386869e36


def measured(dtype: str = "f8") -> np.ndarray:
    """`[N, 3]`, whole numbers from 1 on."""
    return np.arange(1, 3 * N + 1).reshape(N, 3).astype(dtype)


def written(folder: Path, variables: Mapping[str, xr.Variable], form: str = "netcdf4") -> Path:
    """Variables as they are stored, with their attributes as they stand: nothing is encoded."""
    raw = xr.Dataset(dict(variables))
    path = folder / ("file.zarr" if form.startswith("zarr") else "file.nc")
    if form in ("classic", "offset64"):
        raw.to_netcdf(path, engine="scipy", format="NETCDF3_CLASSIC" if form == "classic" else "NETCDF3_64BIT")
    elif form.startswith("zarr"):
        zarr = pytest.importorskip("zarr")
        group = zarr.open_group(path, mode="w", zarr_format=int(form[-1]))
        for name, variable in raw.variables.items():
            array = group.create_array(name, shape=variable.shape, dtype=variable.dtype, **_dimensions(form, variable))
            array[:] = variable.to_numpy()
            array.attrs.update({**array.attrs, **_plain(variable.attrs)})
    else:
        with h5netcdf.File(path, "w") as file:
            file.dimensions = dict(raw.sizes)
            for name, variable in raw.variables.items():
                dtype = h5py.string_dtype() if variable.dtype.kind in "UO" else variable.dtype
                stored = file.create_variable(name, variable.dims, dtype, data=variable.to_numpy().astype(dtype))
                stored.attrs.update(variable.attrs)
    return path


def _dimensions(form: str, variable: xr.Variable) -> dict[str, Any]:
    dims = list(map(str, variable.dims))
    return {"attributes": {"_ARRAY_DIMENSIONS": dims}} if form == "zarr2" else {"dimension_names": dims}


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in attributes.items()}


def stored(values: Any, **attributes: Any) -> xr.Variable:
    return xr.Variable(("sample", "k")[: np.ndim(values)], np.asarray(values), attributes)


def both(path: Path) -> np.ndarray:
    """`x` with NaN where it was not measured, the same in memory and from disk."""
    loaded, kept = (as_multimodal(path, ReadOptions(in_memory=choice)) for choice in IN_MEMORY)
    values = [np.where(data.measured("x"), np.asarray(data.modalities["x"]), np.nan) for data in (loaded, kept)]
    np.testing.assert_array_equal(values[0], values[1])
    return values[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("dtype", "attributes"),
    [
        ("f4", {"missing_value": np.float32(5)}),
        ("f8", {"missing_value": 5.0, "_FillValue": 7.0}),
        ("i2", {"missing_value": np.int16(5), "scale_factor": 0.5, "add_offset": 100.0}),
        ("i4", {"missing_value": np.array([5, 7, 11], dtype="i4"), "scale_factor": np.float32(0.1)}),
        ("i1", {"missing_value": np.int8(5)}),
        ("f4", {"scale_factor": 2.0}),
    ],
)
def test_gaps_and_packing_are_those_of_xarray(
    tmp_path: Path, form: str, dtype: str, attributes: dict[str, Any]
) -> None:
    if form.startswith("zarr") and "_FillValue" in attributes:
        pytest.skip("zarr encodes it")
    path = written(tmp_path, {"x": stored(measured(dtype), **attributes)}, form)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = {"netcdf4": "h5netcdf", "zarr3": "zarr"}.get(form, "scipy")
        with xr.open_dataset(path, engine=engine) as oracle:
            expected = oracle["x"].to_numpy()
    np.testing.assert_array_equal(both(path), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("dtype", "attributes", "missing"),
    [
        ("f4", {"missing_value": np.float64(2.1)}, [2]),  # xarray compares with 2.1 in double precision
        ("f8", {"valid_min": 2.0, "valid_max": 23.0}, [1, 24]),
        ("f4", {"valid_range": np.array([3.0, 24.0])}, [1, 2]),
        ("f4", {"valid_max": np.float64(2.1)}, range(3, 25)),  # 2.1 as it is stored
        ("i2", {"valid_range": np.array([2, 23], dtype="i2"), "scale_factor": 0.5, "add_offset": 9.0}, [1, 24]),
        ("i2", {"valid_range": np.array([10.0, 20.5]), "scale_factor": 0.5, "add_offset": 9.0}, [1, 24]),
        ("i2", {"valid_max": 8.0, "scale_factor": -0.5, "add_offset": 9.0}, [1]),
        ("u1", {"valid_max": np.uint8(23)}, [24]),
        ("u1", {"valid_min": np.uint8(2)}, [1]),
        ("u1", {"valid_range": np.array([0, 255])}, []),
        ("i4", {"missing_value": -999.0, "_FillValue": np.int32(4)}, [4]),
        ("i8", {"missing_value": 3.5}, []),
    ],
)
def test_values_that_are_not_valid_are_gaps(
    tmp_path: Path, dtype: str, attributes: dict[str, Any], missing: Any
) -> None:
    values = measured(dtype)
    if "2.1" in str(attributes):
        values[0, 1] = 2.1
    path = written(tmp_path, {"x": stored(values, **attributes)})
    unpacked = values * attributes.get("scale_factor", 1.0) + attributes.get("add_offset", 0.0)
    expected = np.where(np.isin(measured(), list(missing)), np.nan, unpacked)
    np.testing.assert_allclose(both(path), expected.astype(np.float32), rtol=1e-6)


def test_unsigned_bytes_of_classic_files(tmp_path: Path) -> None:
    """Bytes of classic files are signed; `_Unsigned` reads them otherwise, the limits of their range, too."""
    values = np.arange(120, 120 + 3 * N).reshape(N, 3)
    attributes = {"_Unsigned": "true", "valid_range": np.array([0, -114], dtype="i1"), "_FillValue": np.int8(121)}
    path = written(tmp_path, {"x": stored(values.astype("i1"), **attributes)}, "classic")
    np.testing.assert_array_equal(both(path), np.where((values > 142) | (values == 121), np.nan, values))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4", "u8", "i2", "u2"])
def test_what_netcdf_never_wrote_is_a_gap(tmp_path: Path, dtype: str) -> None:
    """As the C library leaves it: the dataset has its filler, and no attribute."""
    filler = {"i4": -2147483647, "i8": -9223372036854775806, "i2": -32767}.get(dtype, FILLER)
    filler = {"u4": 2**32 - 1, "u8": 2**64 - 2, "u2": 65535}.get(dtype, filler)
    path = written(tmp_path, {"y": stored(measured())})
    with h5py.File(path, "a") as file:
        made = file.create_dataset("x", (N, 3), dtype, fillvalue=np.array(filler, dtype), chunks=(1, 3))
        made[:-1] = measured(dtype)[:-1]
        for place, name in enumerate(("sample", "k")):
            made.dims[place].attach_scale(file[name])
    found = both(path)
    assert np.isnan(found[-1]).all()
    np.testing.assert_array_equal(found[:-1], measured("f4")[:-1])


@pytest.mark.parametrize(
    ("form", "dtype"), [("classic", "f4"), ("offset64", "i4"), ("classic", "i2"), ("netcdf4", "i4")]
)
def test_fillers_that_were_written_are_gaps(tmp_path: Path, form: str, dtype: str) -> None:
    values = measured(dtype)
    values[2, 1] = {"f4": FILLER, "i4": -2147483647, "i2": -32767}[dtype]
    found = both(written(tmp_path, {"x": stored(values)}, form))
    assert np.argwhere(np.isnan(found)).tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("form", "dtype", "value"), [("netcdf4", "u2", 65535), ("netcdf4", "u1", 255), ("classic", "i1", -127)]
)
def test_the_end_of_a_detectors_range_is_a_value(tmp_path: Path, form: str, dtype: str, value: int) -> None:
    values = measured(dtype)
    values[2] = value
    np.testing.assert_array_equal(both(written(tmp_path, {"x": stored(values)}, form)), values)


def test_a_declared_gap_replaces_the_filler(tmp_path: Path) -> None:
    values = (measured("i8") - 2147483650).clip(-2147483648).astype("i4")
    np.testing.assert_array_equal(
        read_file(written(tmp_path, {"x": stored(values, _FillValue=np.int32(0))}))["x"], values
    )


@pytest.mark.parametrize(("fill", "is_gap"), [(0, False), (7, True), (None, False)])
def test_fill_values_of_zarr_2(tmp_path: Path, fill: int | None, is_gap: bool) -> None:
    """0 is zarr's own; another one stands where xarray keeps a declared `_FillValue`."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=2)
    attributes = {"_ARRAY_DIMENSIONS": ["sample", "k"]}
    made = group.create_array("x", shape=(N, 3), dtype="i4", fill_value=fill, attributes=attributes)
    made[:] = measured("i4")
    made[0, 0] = 0
    found = both(tmp_path / "x.zarr")
    assert found[0, 0] == 0
    assert np.isnan(found[2, 0]) == is_gap


def test_gap_values_that_xarray_declares_in_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    values = np.where(measured() == 5, np.nan, measured())
    for version in (2, 3):
        path = tmp_path / f"{version}.zarr"
        encoding = {"x": {"dtype": "i2", "_FillValue": -999, "scale_factor": 0.5}}
        xr.Dataset({"x": stored(values)}).to_zarr(path, zarr_format=version, encoding=encoding, consolidated=False)
        np.testing.assert_array_equal(both(path), values)


def test_every_role_is_read_by_the_same_rule(tmp_path: Path) -> None:
    codes = np.array([1, 2, 1, 2, 1, 2, 1, -9], dtype="i4")
    variables = {
        "x": stored(measured()),
        "phase": stored(codes, missing_value=np.int32(-9), role="label"),
        "batch": stored(codes, valid_min=np.int32(0), role="covariate"),
    }
    with pytest.raises(ValueError, match=r"file\.nc: batch: expected a level for every sample, got none for 1 of 8"):
        as_multimodal(written(tmp_path, variables))
    variables["batch"] = stored(np.array(["a", "b"] * 4), role="covariate")
    variables["phase"].attrs["missing_value"] = np.int32(-9)
    data = as_multimodal(written(tmp_path, variables))
    assert data.factors["phase"].tolist() == [0, 1, 0, 1, 0, 1, 0, -1]
    assert data.factor_levels["phase"] == ("1", "2")


def test_large_codes_of_specimens_stay_apart(tmp_path: Path) -> None:
    """A filler makes floats of whole numbers, which do not hold every code of eight bytes."""
    codes = 10**17 + np.arange(N)
    variables = {"x": stored(measured()), "specimen": stored(codes, role="group")}
    data = as_multimodal(written(tmp_path, variables))
    assert data.groups is not None
    assert len(np.unique(data.groups)) == N


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"missing_value": "-999"}, "x: expected numbers in the attribute missing_value, got '-999'"),
        ({"valid_range": np.array([1.0])}, "x: expected 2 numbers in the attribute valid_range, got"),
        ({"scale_factor": "0.1"}, "x: expected 1 number in the attribute scale_factor, got '0.1'"),
        ({"valid_min": 5.0, "valid_max": 2.0}, "x: expected a valid range with values in it, got 5 to 2; .*valid_min"),
    ],
)
def test_attributes_that_cannot_be_followed(tmp_path: Path, attributes: dict[str, Any], words: str) -> None:
    path = written(tmp_path, {"x": stored(measured(), **attributes), "y": stored(measured())})
    for in_memory in IN_MEMORY:
        with pytest.raises(ValueError, match=rf"file\.nc: {words}"):
            as_multimodal(path, ReadOptions(in_memory=in_memory))
    assert list(as_multimodal(path, ReadOptions(modalities=("y",))).modalities) == ["y"]


def tree_of(folder: Path, form: str, groups: Mapping[str, xr.Dataset]) -> Path:
    """A file of groups."""
    folder.mkdir(exist_ok=True)
    tree, path = xr.DataTree.from_dict(dict(groups)), folder / ("tree.zarr" if form == "zarr2" else "tree.nc")
    if form == "zarr2":
        pytest.importorskip("zarr")
        tree.to_zarr(path, zarr_format=2)
    else:
        tree.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize("form", ["netcdf4", "zarr2"])
def test_the_group_that_holds_everything(tmp_path: Path, form: str) -> None:
    strain = xr.Dataset(coords={"strain": ("strain", [0.0, 1.0, 2.0])})
    curves = xr.Dataset({"stress": (("sample", "strain"), measured())})
    path = tree_of(tmp_path, form, {"/": strain, "/lab/measurements": curves})
    for in_memory in IN_MEMORY:
        data = as_multimodal(path, ReadOptions(in_memory=in_memory))
        assert data.kinds == {"stress": "curve"}
        assert data.axes["stress"].values.tolist() == [0, 1, 2]
        np.testing.assert_array_equal(np.asarray(data.modalities["stress"]), measured())
    two = tree_of(tmp_path / "two", form, {"/a": curves, "/b": curves.rename(stress="load")})
    with pytest.raises(ValueError, match=r"variables in one group, got /a has stress; /b has load; put them into one"):
        as_multimodal(two)


def test_cdf_5_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "x.nc").write_bytes(b"CDF\x05" + bytes(60))
    with pytest.raises(ValueError, match="CDF-5, which is not read; nccopy"):
        as_multimodal(tmp_path / "x.nc")


def test_the_order_of_variables_in_zarr_is_no_chance(tmp_path: Path) -> None:
    path = written(tmp_path, {name: stored(measured()) for name in "zbam"}, "zarr3")
    assert list(as_multimodal(path).modalities) == sorted("zbam")


def test_a_damaged_variable_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, {"x": stored(measured()), "y": stored(measured())})
    with h5py.File(path, "a") as file:
        del file["y"]
        made = file.create_dataset("y", (N, 3), "f8", chunks=(N, 3), compression="gzip", data=measured())
        for place, name in enumerate(("sample", "k")):
            made.dims[place].attach_scale(file[name])
        chunk = made.id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match=r"file\.nc.*y: "):
        as_multimodal(path)


@pytest.mark.parametrize(("code", "share"), [(-999.0, 0.25), (1e4, 0.5), (-99.0, 0.25)])
def test_codes_that_were_not_declared_are_named(tmp_path: Path, code: float, share: float) -> None:
    values = np.random.default_rng(0).normal(5.0, 1.0, (2 * N, 3))
    values[: int(2 * N * share)] = code
    path = written(tmp_path, {"x": stored(values)})
    for in_memory in IN_MEMORY:
        (note,) = as_multimodal(path, ReadOptions(in_memory=in_memory)).notes
        assert note.startswith(f"x: {100 * share:g} % of the values are exactly {code:g}, away from all others (")
    written(tmp_path, {"x": stored(values, missing_value=code)})
    assert not as_multimodal(path).notes


@pytest.mark.parametrize(
    "values",
    [
        np.minimum(np.random.default_rng(0).normal(size=(90, 3)), 0.5),  # at its limit
        np.random.default_rng(0).poisson(0.3, (90, 3)),  # nothing was there
        np.where(np.random.default_rng(0).random((90, 3)) < 0.3, 0.0, np.random.default_rng(1).uniform(5, 6, (90, 3))),
        np.minimum(np.random.default_rng(0).uniform(0, 1100, (90, 3)), 999).round(),
        np.random.default_rng(0).integers(0, 2, (90, 3)),
        np.random.default_rng(0).lognormal(0, 3, (90, 3)).round(1),
    ],
)
def test_limits_counts_and_zeros_are_no_codes(values: np.ndarray) -> None:
    assert not as_multimodal({"x": values}).notes


def test_a_code_in_which_all_else_drowns_is_refused() -> None:
    values = np.random.default_rng(0).normal(size=(90, 3))
    values[:9] = 1e20
    with pytest.raises(ValueError, match=r"x: expected values on one scale, got 1e\+20 in sample 0 where nearly all"):
        as_multimodal({"x": values})


def test_levels_that_look_like_gaps_are_named() -> None:
    phase = np.where(np.arange(2 * N) % 4 == 0, "n.d.", "a")
    options = ReadOptions(labels=("phase",))
    (note,) = as_multimodal({"x": np.arange(2.0 * N), "phase": phase}, options).notes
    assert note.startswith("phase: 'n.d.' in 4 of 16 samples looks like a missing entry, and counts as a level")


def test_groups_that_are_not_read_are_named(tmp_path: Path) -> None:
    curves = xr.Dataset({"stress": (("sample", "strain"), measured())})
    path = tree_of(tmp_path, "netcdf4", {"/": curves, "/raw": curves})
    assert as_multimodal(path).notes == ("groups of the file that are not read: /raw",)
