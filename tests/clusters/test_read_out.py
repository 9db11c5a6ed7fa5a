"""Cells read out of embeddings: known clusters, curved clusters, degenerate input, bad input."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from causalpima.inference.clusters.clustering import Attempt, Candidate, Fit, ReadOut, default_sizes, read_out

BENCHMARK = runpy.run_path(str(Path(__file__).resolve().parents[2] / "benchmarks" / "read_out.py"))


def banana_and_two_blobs(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Three clusters of masses 5 : 3 : 2; the first is bent, so that one Gaussian cannot cover it."""
    generator = np.random.default_rng(seed)
    cluster = generator.choice(3, size=n, p=[0.5, 0.3, 0.2])
    angle = generator.uniform(0, 0.9 * np.pi, n)
    bent = 4 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    centre = np.array([[0.0, 0.0], [0.5, 0.5], [7.0, 1.0]])[cluster]
    points = np.where(cluster[:, None] == 0, bent, centre) + generator.normal(0, 0.25, (n, 2))
    return points, cluster


def hard(found: ReadOut) -> np.ndarray:
    return np.asarray(found.cell_responsibilities.argmax(axis=1))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_curved_and_unequal_clusters_are_found(seed: int) -> None:
    points, cluster = banana_and_two_blobs(seed)
    found = read_out(points, 3, seed=seed)
    assert adjusted_rand_score(cluster, hard(found)) > 0.99
    assert found.n_occupied == 3


def test_one_gaussian_per_cell_does_not_find_them() -> None:
    points, cluster = banana_and_two_blobs(0)
    plain = GaussianMixture(3, covariance_type="diag", n_init=5, random_state=0).fit_predict(points)
    assert adjusted_rand_score(cluster, plain) < 0.9


def test_beats_a_diagonal_mixture_on_an_embedding_like_those_of_the_circles() -> None:
    sample = BENCHMARK["curved_clusters"]("chain", 4096, 1)
    accuracy = BENCHMARK["accuracy"](sample.cell, hard(read_out(sample.embedding, 8, n_init=1, seed=1)))
    assert accuracy > sample.bayes_ceiling - 0.02
    assert BENCHMARK["plain_mixture"](sample, "diag", 1) < sample.bayes_ceiling - 0.1


def test_lower_entropy_goes_with_higher_accuracy() -> None:
    data_sets = (("chain", 1), ("collider", 0), ("independent", 1))
    samples = [BENCHMARK["curved_clusters"](truth, 1500, seed) for truth, seed in data_sets]
    pairs = [pair for seed, sample in enumerate(samples) for pair in BENCHMARK["single_mixtures"](sample, seed, 1)]
    assert BENCHMARK["rank_correlation"](pairs) < -0.6


def test_the_benchmark_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    flags = ["--seeds", "1", "--samples", "200", "--n_init", "1", "--starts", "1", "--json", str(report)]
    monkeypatch.setattr("sys.argv", ["read_out.py", *flags])
    BENCHMARK["main"]()
    written = json.loads(report.read_text())
    assert [record["truth"] for record in written["records"]] == ["independent", "chain", "collider"]
    assert 0 < written["summary"]["read_out mean"] <= 1
    assert "spearman, pooled" in capsys.readouterr().out


def test_what_is_returned_belongs_together() -> None:
    points, _ = banana_and_two_blobs(3)
    found = read_out(points, 3, sizes=(4, 7), n_init=3, seed=0)
    assert found.responsibilities.shape == (600, found.size)
    assert sorted(set(found.component_cell)) == [0, 1, 2]
    np.testing.assert_allclose(found.responsibilities.sum(axis=1), 1.0, atol=1e-12)
    by_loop = [found.responsibilities[:, found.component_cell == c].sum(axis=1) for c in range(3)]
    np.testing.assert_allclose(found.cell_responsibilities, np.stack(by_loop, axis=1), atol=1e-15)
    assert [c.size for c in found.candidates] == [4, 4, 4, 7, 7, 7]
    assert found.n_occupied == max(c.n_occupied for c in found.candidates)


def test_merged_components_are_kept_where_one_gaussian_per_cell_blurs_a_curved_group() -> None:
    points, _ = banana_and_two_blobs(3)
    found = read_out(points, 3, sizes=(6,), n_init=1, seed=0)
    assert found.size == 6
    assert found.entropy == pytest.approx(found.candidates[0].entropy, rel=1e-12)


def test_one_gaussian_per_cell_is_taken_where_its_cells_are_clearer() -> None:
    generator = np.random.default_rng(0)
    centre = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])[generator.choice(3, size=600, p=[0.5, 0.3, 0.2])]
    found = read_out(centre + 0.7 * generator.normal(size=(600, 2)), 3, sizes=(6,), n_init=1, seed=0)
    assert found.size == 3
    assert found.entropy < 0.8 * found.candidates[0].entropy


def candidate(entropy: float, n_occupied: int, likelihood: float = 0.0) -> Candidate:
    return Candidate(16, entropy, n_occupied, lower_bound=0.0, converged=True, classification_likelihood=likelihood)


def test_a_candidate_that_swallowed_cells_is_not_clearer_though_its_entropy_is_zero() -> None:
    swallowed, clear, blurred = candidate(0.0, 1), candidate(0.05, 8), candidate(0.2, 8)
    assert clear.is_clearer_than(blurred)
    assert not swallowed.is_clearer_than(blurred)
    assert not blurred.is_clearer_than(clear)


def test_occupied_cells_come_before_likelihood() -> None:
    def attempt(n_occupied: int, *likelihoods: float) -> Attempt:
        return Attempt(*(Fit(GaussianMixture(), np.arange(8), candidate(0.1, n_occupied, l)) for l in likelihoods))

    swallowed, likely, unlikely = attempt(7, -1.0, -1.0), attempt(8, -2.0, -3.0), attempt(8, -1.9, -3.2)
    assert sorted([swallowed, unlikely, likely], key=lambda a: a.rank) == [likely, unlikely, swallowed]


def test_entropy_and_occupation_by_hand() -> None:
    R = np.array([[0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    found = ReadOut(np.repeat(R, 3, axis=0), np.array([2, 0, 2, 1]), 4, ())
    cells = [[0.25, 0.0, 0.75], [0.0, 0.0, 1.0], [0.2, 0.4, 0.4]]
    expected = -sum(p * math.log(p) for row in cells for p in row if p > 0) / 3
    assert found.entropy == pytest.approx(expected, rel=1e-14)
    assert found.n_occupied == 2, "cells 1 and 2 are the most probable of six and three samples"


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not() -> None:
    points, _ = banana_and_two_blobs(1)
    first, again, other = (read_out(points, 3, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.responsibilities, again.responsibilities)
    assert first.candidates == again.candidates
    assert first.candidates != other.candidates


def test_a_candidate_does_not_depend_on_what_else_is_tried() -> None:
    points, _ = banana_and_two_blobs(1)
    many = read_out(points, 3, sizes=(4, 6, 8), n_init=2, seed=4).candidates
    alone = read_out(points, 3, sizes=(6,), n_init=1, seed=4).candidates
    assert alone == (many[2],)


def test_global_state_is_left_alone() -> None:
    points, _ = banana_and_two_blobs(0, n=100)
    expected = np.random.RandomState(7).random_sample()
    np.random.seed(7)
    before = [pool["num_threads"] for pool in threadpool_info()], torch.get_num_threads()
    read_out(points, 2, seed=0)
    assert ([pool["num_threads"] for pool in threadpool_info()], torch.get_num_threads()) == before
    assert np.random.random_sample() == expected


def test_units_and_constant_dimensions_do_not_matter() -> None:
    points, _ = banana_and_two_blobs(2)
    rescaled = np.insert(points * [1e-3, 1e4] + [5.0, -2e4], 1, 3.7, axis=1)
    found, again = read_out(points, 3, seed=0), read_out(rescaled, 3, seed=0)
    assert adjusted_rand_score(hard(again), hard(found)) > 0.99
    assert again.entropy == pytest.approx(found.entropy, abs=2e-3)


def test_many_samples_are_fitted_on_a_part_and_all_evaluated() -> None:
    points, cluster = banana_and_two_blobs(0, n=3000)
    found = read_out(points, 3, n_fit=500, seed=0)
    assert found.responsibilities.shape[0] == 3000
    assert adjusted_rand_score(cluster, hard(found)) > 0.99
    assert min(c.entropy for c in found.candidates) == pytest.approx(found.entropy, abs=0.02)


GENERATOR = np.random.default_rng(0)
DEGENERATE = {
    "one sample": GENERATOR.normal(size=(1, 2)),
    "two samples": GENERATOR.normal(size=(2, 3)),
    "fewer samples than cells": GENERATOR.normal(size=(3, 2)),
    "fewer samples than sizes": GENERATOR.normal(size=(9, 2)),
    "all the same": np.full((50, 2), 0.3),
    "six points, many times": np.repeat(GENERATOR.normal(size=(6, 2)), 40, axis=0),
    "nearly the same": 1.0 + 1e-15 * GENERATOR.normal(size=(60, 2)),
    "on a line": np.outer(GENERATOR.normal(size=80), [1.0, -2.0, 0.5]),
    "one far away": np.vstack([GENERATOR.normal(size=(99, 2)), [[1e9, 0.0]]]),
    "tiny": 1e-200 * GENERATOR.normal(size=(60, 2)),
    "more dimensions than samples": GENERATOR.normal(size=(12, 30)),
    "integers": GENERATOR.integers(0, 2, size=(100, 2)),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("n_cells", [1, 4])
def test_degenerate_input(name: str, n_cells: int) -> None:
    points = DEGENERATE[name]
    found = read_out(points, n_cells, seed=0)
    assert_sound(found, len(points), n_cells)
    assert found.size <= len(np.unique(points, axis=0))


@settings(max_examples=20)
@given(
    values=st.lists(st.sampled_from([-1e6, -1.0, 0.0, 1e-9, 0.5, 3.0]), min_size=2, max_size=40),
    n_cells=st.integers(1, 3),
)
def test_any_finite_embedding_gives_responsibilities(values: list[float], n_cells: int) -> None:
    points = np.array(values[: len(values) // 2 * 2]).reshape(-1, 2)
    assert_sound(read_out(points, n_cells, n_init=1, seed=0), len(points), n_cells)


def assert_sound(found: ReadOut, n_samples: int, n_cells: int) -> None:
    cells = found.cell_responsibilities
    assert cells.shape == (n_samples, n_cells)
    assert np.isfinite(cells).all()
    np.testing.assert_allclose(cells.sum(axis=1), 1.0, atol=1e-9)
    assert 0 <= found.n_occupied <= n_cells
    assert 0.0 <= found.entropy <= math.log(n_cells) + 1e-9


def test_a_single_cell_takes_all() -> None:
    found = read_out(banana_and_two_blobs(0)[0], 1, seed=0)
    assert {c.size for c in found.candidates} == {2, 3}
    assert found.component_cell.tolist() == [0] * found.size
    np.testing.assert_allclose(found.cell_responsibilities, 1.0, atol=1e-12)
    assert found.entropy == pytest.approx(0.0, abs=1e-12)


def test_a_mixture_that_did_not_converge_is_recorded_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    points, _ = banana_and_two_blobs(0)
    assert all(c.converged for c in read_out(points, 3, seed=0).candidates)

    def impatient(*args: object, **options: object) -> GaussianMixture:
        return GaussianMixture(*args, **{**options, "max_iter": 1})

    monkeypatch.setattr("sklearn.mixture.GaussianMixture", impatient)
    assert not any(c.converged for c in read_out(points, 3, seed=0).candidates)


def test_default_sizes() -> None:
    assert default_sizes(8, 4096, 2) == (12, 16, 20)
    assert default_sizes(1, 4096, 2) == (2, 3)
    assert default_sizes(3, 4096, 2) == (5, 6, 8)
    assert default_sizes(4, 91, 2) == (6, 8, 10)
    assert default_sizes(8, 91, 3) == (11,)
    assert default_sizes(8, 20, 2) == (8,)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(value: float) -> None:
    points, _ = banana_and_two_blobs(0)
    points[[17, 40], 1] = value
    with pytest.raises(ValueError, match=r"embedding: expected finite .* 2 of 600 rows, first in row 17"):
        read_out(points, 3, seed=0)


@pytest.mark.parametrize("shape", [(5,), (0, 2), (5, 0), (5, 2, 1)])
def test_an_embedding_is_a_matrix(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"embedding: expected \[sample, dimension\]"):
        read_out(np.zeros(shape), 1, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_cells": 0}, "n_cells: expected at least 1, got 0"),
        ({"sizes": (4, 2)}, r"sizes: expected .* >= n_cells = 3, got \(4, 2\)"),
        ({"sizes": ()}, "sizes: expected one or more"),
        ({"n_init": 0}, "n_init: expected at least 1, got 0"),
        ({"n_fit": 1}, "n_fit: expected at least 2, got 1"),
        ({"seed": -1}, "seed: expected at least 0, got -1"),
        ({"regularisation": 0.0}, "regularisation: expected a positive number, got 0.0"),
        ({"regularisation": math.nan}, "regularisation: expected a positive number, got nan"),
    ],
)
def test_settings_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_out(np.zeros((5, 2)), **{"n_cells": 3, "seed": 0, **settings})
