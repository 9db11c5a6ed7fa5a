"""The read-out for few samples per dimension: k-means and one covariance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from causalpima.inference.clusters.clustering import choose_shape, read_out, read_out_round


def blobs(n: int = 300, n_dimensions: int = 10, n_cells: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Round clusters in many dimensions, with one covariance."""
    generator = np.random.default_rng(seed)
    cell = generator.integers(0, n_cells, n)
    means = 4 * np.eye(n_cells, n_dimensions)
    return means[cell] + generator.normal(size=(n, n_dimensions)), cell


def test_few_samples_in_many_dimensions_are_read_out_rightly_where_full_covariances_fail() -> None:
    points, cell = blobs()
    found = read_out_round(points, 6, seed=0).cell_responsibilities.argmax(1)
    curved = read_out(points, 6, seed=0).cell_responsibilities.argmax(1)
    assert adjusted_rand_score(cell, found) > 0.9
    assert adjusted_rand_score(cell, found) > adjusted_rand_score(cell, curved)


def test_responsibilities_are_those_of_gaussians_with_the_pooled_covariance() -> None:
    points, _ = blobs(n=120, n_dimensions=3, n_cells=3)
    found = read_out_round(points, 3, seed=1)
    label = found.responsibilities.argmax(1)
    # The clusters themselves are those of k-means, which the pooled Gaussians need not share at the borders.
    from sklearn.cluster import KMeans

    label = KMeans(3, n_init=10, random_state=1).fit_predict(points)
    means = np.stack([points[label == c].mean(0) for c in range(3)])
    pooled = sum((points[label == c] - means[c]).T @ (points[label == c] - means[c]) for c in range(3)) / len(points)
    density = np.stack([(label == c).mean() * multivariate_normal(means[c], pooled).pdf(points) for c in range(3)], 1)
    np.testing.assert_allclose(found.responsibilities, density / density.sum(1, keepdims=True), atol=1e-4)


def test_fewer_distinct_samples_than_cells_leave_cells_empty() -> None:
    points = np.repeat(np.eye(2), 5, axis=0)
    found = read_out_round(points, 4, seed=0)
    assert found.n_cells == 4
    assert found.size == 2
    assert found.n_occupied == 2


def test_a_subsample_decides_and_all_are_assigned() -> None:
    points, cell = blobs(n=2000)
    found = read_out_round(points, 6, n_fit=300, seed=0)
    assert found.responsibilities.shape == (2000, 6)
    assert adjusted_rand_score(cell, found.responsibilities.argmax(1)) > 0.9


@pytest.mark.parametrize(
    ("n_samples", "n_dimensions", "n_cells", "shape"),
    [(3686, 2, 8, "curved"), (1800, 4, 10, "round"), (1000, 2, 8, "curved"), (999, 2, 8, "round")],
)
def test_the_choice(n_samples: int, n_dimensions: int, n_cells: int, shape: str) -> None:
    assert choose_shape(n_samples, n_dimensions, n_cells) == shape


def test_the_seed_decides() -> None:
    points, _ = blobs()
    first, again = (read_out_round(points, 6, seed=3).responsibilities for _ in range(2))
    assert np.array_equal(first, again)
