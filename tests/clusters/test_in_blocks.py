"""What is computed block by block is what it is of all samples at once."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.clusters import clustering as module
from causalpima.inference.clusters.clustering import read_out, read_out_round, row_blocks, soft_assign
from causalpima.inference.clusters.matching import match_cells


def blobs(n: int = 900) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)) * 0.5 + 4.0 * np.eye(4)[rng.integers(0, 4, n)] @ rng.normal(size=(4, 2))


def test_blocks_are_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 4)
    assert list(row_blocks(9)) == [slice(0, 4), slice(4, 8), slice(8, 9)]


@pytest.mark.parametrize("reader", [read_out, read_out_round])
def test_read_out_in_blocks(reader: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(reader)
    whole = reader(blobs(), 4, seed=0)
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 64)
    parts = reader(blobs(), 4, seed=0)
    np.testing.assert_allclose(parts.responsibilities, whole.responsibilities, atol=1e-8)
    np.testing.assert_array_equal(parts.component_cell, whole.component_cell)


@pytest.mark.parametrize("reader", [read_out, read_out_round])
def test_more_samples_than_the_fit_are_kept_in_single_precision(reader: object) -> None:
    assert callable(reader)
    found = reader(blobs().astype(np.float32), 4, n_fit=500, seed=0)
    assert found.responsibilities.dtype == found.cell_responsibilities.dtype == np.float32
    np.testing.assert_allclose(found.cell_responsibilities.sum(1), 1, atol=1e-6)
    assert reader(blobs(), 4, n_fit=900, seed=0).responsibilities.dtype == np.float64


def test_posteriors_of_blocks_stand_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 7)
    points, sizes = blobs(30), []

    def posterior(part: np.ndarray) -> np.ndarray:
        sizes.append(len(part))
        return np.exp(part)

    np.testing.assert_array_equal(soft_assign(points, posterior, n_fit=30), np.exp(points))
    assert sizes == [7, 7, 7, 7, 2]


def test_matching_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 16)
    r = np.eye(5)[np.arange(100) // 20]  # a block knows of one or two cells alone
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_array_equal(match_cells(r.astype(np.float32), r[:, order]), order)
