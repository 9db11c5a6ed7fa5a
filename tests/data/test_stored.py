"""Modalities that stay on disk: the same samples, the same refusals, in bounded memory."""

from __future__ import annotations

import dataclasses
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from test_bad_data import CASES
from test_roles_and_gaps import check_specimens, specimens

from causalpima.inference.data import stored
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.data.stored import StoredArray

ON_DISK = ReadOptions(in_memory="no")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[MultimodalData, MultimodalData]:
    """A file in memory and on disk, read in blocks of two or three samples."""
    path = tmp_path_factory.mktemp("stored") / "specimens.nc"
    specimens().to_netcdf(path, engine="h5netcdf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "_BLOCK_BYTES", 100)
        return as_multimodal(path), as_multimodal(path, ON_DISK)


def stored_array(data: MultimodalData, name: str, part: str = "modalities") -> StoredArray:
    array: Any = getattr(data, part)[name]
    assert isinstance(array, StoredArray)
    return array


def in_memory(data: MultimodalData) -> dict[str, Any]:
    return {name: np.asarray(values) for name, values in [*data.modalities.items(), *data.observed.items()]}


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
@pytest.mark.parametrize("compressed", [False, True])
def test_samples_on_disk_are_those_in_memory(tmp_path: Path, suffix: str, compressed: bool) -> None:
    path = tmp_path / f"specimens.{suffix}"
    if suffix == "zarr":
        pytest.importorskip("zarr")
        specimens().to_zarr(path, zarr_format=2)
    else:
        encoding = {"load": {"zlib": True, "chunksizes": (2, 4)}} if compressed else {}
        specimens().to_netcdf(path, engine="h5netcdf", encoding=encoding)
    loaded, kept = as_multimodal(path), as_multimodal(path, ON_DISK)
    for part in ("modalities", "observed"):
        for name, array in getattr(loaded, part).items():
            other = getattr(kept, part)[name]
            assert isinstance(other, StoredArray if name != "mass" else np.ndarray)
            assert (other.shape, other.dtype, other.ndim, len(other)) == (array.shape, array.dtype, array.ndim, 6)
            np.testing.assert_array_equal(np.asarray(other), array)
    for name, present in loaded.present.items():
        np.testing.assert_array_equal(kept.present[name], present)
    assert stored_array(kept, "load").count == loaded.observed["load"].sum()


def test_all_else_is_read_as_ever(both: tuple[MultimodalData, MultimodalData]) -> None:
    kept = both[1]
    whole = dataclasses.replace(
        kept,
        modalities={name: np.asarray(values) for name, values in kept.modalities.items()},
        observed={name: np.asarray(values) for name, values in kept.observed.items()},
    )
    check_specimens(whole)


INDICES = st.one_of(
    st.slices(6),
    st.integers(-6, 5),
    st.lists(st.integers(-6, 5), max_size=9).map(lambda rows: np.array(rows, dtype=np.int64)),
    st.lists(st.booleans(), min_size=6, max_size=6).map(np.array),
)


@given(index=INDICES, name=st.sampled_from(["load", "picture"]))
def test_an_index_gives_what_it_gives_of_an_array(
    both: tuple[MultimodalData, MultimodalData], index: Any, name: str
) -> None:
    loaded, kept = both
    np.testing.assert_array_equal(stored_array(kept, name)[index], loaded.modalities[name][index])
    np.testing.assert_array_equal(stored_array(kept, name, "observed")[index], loaded.observed[name][index])


def test_what_needs_all_elements_gets_them(both: tuple[MultimodalData, MultimodalData]) -> None:
    loaded, kept = both
    measured: Any = stored_array(kept, "load", "observed")
    expected = loaded.modalities["load"][loaded.observed["load"]]
    np.testing.assert_array_equal(stored_array(kept, "load")[measured], expected)
    assert stored_array(kept, "load").astype(np.float64).dtype == np.float64


def test_what_comes_back_may_be_changed(both: tuple[MultimodalData, MultimodalData]) -> None:
    array, mask = stored_array(both[1], "load"), stored_array(both[1], "load", "observed")
    before = array[1:3].copy(), mask[1:3].copy()
    array[1:3][:] = 7
    mask[1:3][:] = False
    np.testing.assert_array_equal(array[1:3], before[0])
    np.testing.assert_array_equal(mask[1:3], before[1])


def test_positions_beyond_the_samples(both: tuple[MultimodalData, MultimodalData]) -> None:
    with pytest.raises(IndexError):
        stored_array(both[1], "load")[np.array([6])]


def test_blocks_are_all_samples(both: tuple[MultimodalData, MultimodalData], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 40)
    blocks = list(stored_array(both[1], "load").blocks())
    assert [rows for rows, _ in blocks] == [slice(0, 2), slice(2, 4), slice(4, 6)]
    np.testing.assert_array_equal(np.concatenate([values for _, values in blocks]), both[0].modalities["load"])


@pytest.mark.parametrize(("data", "options", "match"), CASES, ids=range(len(CASES)))
def test_bad_files_are_refused_in_the_same_words(
    tmp_path: Path, data: xr.Dataset, options: dict[str, Any], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 100)
    data.to_netcdf(tmp_path / "coupons.nc", engine="h5netcdf")
    messages = []
    for in_memory in ("yes", "no"):
        with pytest.raises(ValueError, match=match) as error:
            as_multimodal(tmp_path / "coupons.nc", ReadOptions(**options, in_memory=in_memory))
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (np.full((9, 2), 0.1), "load: expected values that vary, got 0.1 everywhere"),
        (0.3 + 1e-16 * (np.arange(18).reshape(9, 2) % 3), "load: expected values that vary, got 0.3 everywhere"),
        (1e-60 * np.arange(18).reshape(9, 2), "load: expected a standard deviation that fits float32"),
    ],
)
def test_constants(tmp_path: Path, values: np.ndarray, match: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 32)
    xr.Dataset({"load": (("sample", "k"), values)}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=match):
        as_multimodal(tmp_path / "x.nc", ON_DISK)


def test_moments_are_those_of_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 200)
    rng = np.random.default_rng(0)
    values = rng.normal(5, 2, (50, 3)) * [1, 10, 100]
    values[rng.random((50, 3)) < 0.3] = np.nan
    xr.Dataset({"load": (("sample", "k"), values)}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    scan = stored_array(as_multimodal(tmp_path / "x.nc", ON_DISK), "load").scan
    np.testing.assert_allclose(scan._each.spread, np.nanstd(values, 0), rtol=1e-12)
    np.testing.assert_allclose(scan._each.mean, np.nanmean(values, 0), rtol=1e-12)
    np.testing.assert_allclose([scan._all.mean, scan._all.spread], [np.nanmean(values), np.nanstd(values)], rtol=1e-12)


def test_auto_is_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specimens().to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    assert isinstance(as_multimodal(tmp_path / "x.nc").modalities["load"], np.ndarray)
    monkeypatch.setattr("causalpima.inference.data.formats._MOST_BYTES", 100)
    assert isinstance(as_multimodal(tmp_path / "x.nc").modalities["load"], StoredArray)
    assert isinstance(as_multimodal(tmp_path / "x.nc", ReadOptions(in_memory="yes")).modalities["load"], np.ndarray)


def test_choices_of_yaml_and_others() -> None:
    no: Any = False
    assert ReadOptions(in_memory=no).in_memory == "no"
    often: Any = "often"
    with pytest.raises(ValueError, match=r"^in_memory: expected one of auto, yes, no, got 'often'$"):
        ReadOptions(in_memory=often)


def test_arrays_cannot_stay_on_disk(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(12.0).reshape(4, 3))
    with pytest.raises(ValueError, match=r"x\.npz.*it cannot stay on disk.*write it as \.nc or \.zarr"):
        as_multimodal(tmp_path / "x.npz", ON_DISK)


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Peak of NumPy's allocations while reading through: some blocks and a sample of the values."""
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 2**20)
    values = np.random.default_rng(0).standard_normal((100_000, 256), dtype=np.float32)
    n_bytes = values.nbytes
    xr.Dataset({"load": (("sample", "k"), values)}).to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    del values
    tracemalloc.start()
    data = as_multimodal(tmp_path / "x.nc", ON_DISK)
    data.modalities["load"][np.random.default_rng(0).integers(0, 100_000, 256)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n_bytes / 3
