"""Tensors of samples that stay on disk: the same batches as in memory, read where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

from causalpima.inference.data import stored as stored_tensors
from causalpima.inference.data import tensors
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.data.stored import StoredArray, StoredRows
from causalpima.inference.data.tensors import Scale, TensorData, fingerprint, to_tensors
from causalpima.models.batch import Batch

N = 301
SCALES = {"curve": Scale(), "image": Scale(transform="asinh"), "mass": Scale()}
BYTES = 4 * (5 + 2 * 3 * 1) + 5


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Curves with gaps, images that some samples lack, and one number per sample, which is always loaded."""
    rng = np.random.default_rng(0)
    curve = rng.normal(3, 2, (N, 5))
    curve[rng.random((N, 5)) < 0.2] = np.nan
    curve[:, 0] = 1 + rng.random(N)
    image = rng.normal(size=(N, 2, 3))
    image[rng.random(N) < 0.3] = np.nan
    path = tmp_path_factory.mktemp("stored_tensors") / "samples.nc"
    dims = {"curve": ("sample", "k"), "image": ("sample", "height", "width"), "mass": ("sample",)}
    values = {"curve": curve, "image": image, "mass": rng.random(N)}
    xr.Dataset({name: (dims[name], array) for name, array in values.items()}).to_netcdf(path, engine="h5netcdf")
    return path


@pytest.fixture
def both(path: Path) -> tuple[MultimodalData, MultimodalData]:
    return as_multimodal(path), as_multimodal(path, ReadOptions(in_memory="no"))


@pytest.fixture
def loaded_and_stored(both: tuple[MultimodalData, MultimodalData]) -> tuple[TensorData, TensorData]:
    training = np.arange(N) % 3 > 0
    one, other = (to_tensors(data, training, SCALES, torch.device("cpu")) for data in both)
    assert isinstance(other.values["curve"], StoredRows)
    assert isinstance(other.observed["curve"], StoredRows)
    assert isinstance(other.values["mass"], torch.Tensor)
    return one, other


def assert_same(one: Batch, other: Batch) -> None:
    assert one.n_samples == other.n_samples
    assert torch.equal(one.index, other.index)
    for part in ("values", "observed", "present"):
        mine, theirs = getattr(one, part), getattr(other, part)
        assert list(mine) == list(theirs)
        for name, value in mine.items():
            assert value is None if theirs[name] is None else torch.equal(value, theirs[name]), (part, name)


def pairs(one: Iterator[Batch], other: Iterator[Batch]) -> list[tuple[Batch, Batch]]:
    return list(zip(one, other, strict=True))


def test_scales_and_fingerprint_are_those_in_memory(
    both: tuple[MultimodalData, MultimodalData], loaded_and_stored: tuple[TensorData, TensorData]
) -> None:
    one, other = loaded_and_stored
    assert one.standardisation == other.standardisation
    assert fingerprint(both[0]) == fingerprint(both[1])
    assert one.n_elements == other.n_elements


@pytest.mark.parametrize("chosen", [None, np.arange(N) % 10 > 0, np.arange(N) % 7 == 0])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_those_in_memory(
    loaded_and_stored: tuple[TensorData, TensorData],
    chosen: np.ndarray | None,
    shuffle: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All samples fit into one window, which is filled in blocks of some rows."""
    monkeypatch.setattr(stored_tensors, "_BLOCK_BYTES", 500)
    one, other = loaded_and_stored
    if chosen is not None:
        one, other = (data.subset(np.flatnonzero(chosen)) for data in (one, other))
    batches = []
    for data in (one, other):
        torch.manual_seed(5)
        batches.append(list(data.batches(32, shuffle)))
    for mine, theirs in zip(*batches, strict=True):
        assert_same(mine, theirs)


def test_several_windows_give_every_sample_once_as_it_is(
    loaded_and_stored: tuple[TensorData, TensorData], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_WINDOW_BYTES", 70 * BYTES)
    one, other = (data.subset(np.flatnonzero(np.arange(N) % 10 > 0)) for data in loaded_and_stored)
    found = list(other.batches(16, shuffle=True))
    seen = torch.cat([batch.index for batch in found])
    assert seen.sort().values.tolist() == list(range(one.n_samples))
    assert len(found) == -(-one.n_samples // 16)
    assert not torch.equal(seen, seen.sort().values)
    for batch in found:
        assert_same(batch, one.batch(batch.index))


def test_no_more_than_a_window_is_read_at_once(
    loaded_and_stored: tuple[TensorData, TensorData], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shuffled epochs read every row of every variable once; values and mask of a block come from one read."""
    monkeypatch.setattr(tensors, "_WINDOW_BYTES", 70 * BYTES)
    monkeypatch.setattr(stored_tensors, "_BLOCK_BYTES", 20 * BYTES)
    rows: list[int] = []
    read = stored_tensors.StoredArray.__getitem__

    def counted(array: StoredArray, index: np.ndarray) -> np.ndarray:
        rows.append(len(index))
        return read(array, index)

    monkeypatch.setattr(stored_tensors.StoredArray, "__getitem__", counted)
    list(loaded_and_stored[1].batches(16, shuffle=True))
    assert max(rows) <= 20
    # Curves: values, their mask beside them, and the mask as a column; images: values, their presence is in memory.
    assert sum(rows) == 4 * N


def test_the_same_seed_gives_the_same_windows(
    loaded_and_stored: tuple[TensorData, TensorData], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_WINDOW_BYTES", 70 * BYTES)

    def drawn(seed: int) -> list[Batch]:
        torch.manual_seed(seed)
        return list(loaded_and_stored[1].batches(16, shuffle=True))

    for mine, theirs in zip(drawn(1), drawn(1), strict=True):
        assert_same(mine, theirs)
    assert not torch.equal(drawn(1)[0].index, drawn(2)[0].index)


@pytest.mark.parametrize("rows", [[3], [5, 6, 7], [0, 2, 4, 5], [0, 300], [9, 3, 3, 250, 8]])
def test_dense_and_sparse_rows(both: tuple[MultimodalData, MultimodalData], rows: list[int]) -> None:
    for name in ("curve", "image"):
        np.testing.assert_array_equal(both[1].modalities[name][np.array(rows)], both[0].modalities[name][rows])
