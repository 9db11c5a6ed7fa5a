"""One Gaussian per cell: its likelihood against loops over samples and cells, and EM started from given cells."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from causalpima.inference.clusters.clustering import classification_likelihood, refine


def by_hand(points: np.ndarray, cells: np.ndarray, regularisation: float) -> float:
    """The criterion by loops, densities from determinant and inverse."""
    n, J = points.shape
    total = 0.0
    for c in range(cells.shape[1]):
        mass = sum(cells[k, c] for k in range(n))
        mean = sum(cells[k, c] * points[k] for k in range(n)) / mass
        covariance = sum(cells[k, c] * np.outer(points[k] - mean, points[k] - mean) for k in range(n)) / mass
        covariance = covariance + regularisation * np.eye(J)
        for k in range(n):
            distance = (points[k] - mean) @ np.linalg.inv(covariance) @ (points[k] - mean)
            log_density = -0.5 * (J * math.log(2 * math.pi) + math.log(np.linalg.det(covariance)) + distance)
            total += cells[k, c] * (math.log(mass / n) + log_density)
    return total / n


@pytest.mark.parametrize(("J", "C"), [(1, 2), (2, 3), (3, 1)])
def test_likelihood_equals_its_definition(J: int, C: int) -> None:
    generator = np.random.default_rng(J)
    points = generator.normal(size=(30, J)) * np.arange(1, J + 1)
    cells = generator.dirichlet(np.linspace(0.3, 2.0, C), size=30)
    assert classification_likelihood(points, cells, 0.01) == pytest.approx(by_hand(points, cells, 0.01), rel=1e-10)


def test_empty_cells_count_nothing() -> None:
    generator = np.random.default_rng(0)
    points, cells = generator.normal(size=(20, 2)), generator.dirichlet([1.0, 2.0], size=20)
    with_empty = np.insert(cells, 1, 0.0, axis=1)
    expected = classification_likelihood(points, cells, 1e-3)
    assert classification_likelihood(points, with_empty, 1e-3) == pytest.approx(expected, rel=1e-13)


def four_groups(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups of masses 4 : 3 : 2 : 1."""
    generator = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2, 3], [160, 120, 80, 40])
    centre = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 9.0], [-6.0, 4.0]])[group]
    return centre + generator.normal(0, [0.4, 0.6], (400, 2)), group


def test_merging_two_groups_and_splitting_a_third_is_noticed() -> None:
    points, group = four_groups(0)
    halves = (group == 2) & (points[:, 1] > 9.0)
    wrong = np.where(halves, 1, np.where(group == 1, 0, group))  # groups 0 and 1 in one cell, group 2 in two
    right, bad = (classification_likelihood(points, np.eye(4)[labels], 1e-4) for labels in (group, wrong))
    assert right > bad + 0.1


def test_refined_cells_keep_their_numbers_and_take_back_what_was_in_the_wrong_cell() -> None:
    points, group = four_groups(1)
    start = np.where(np.arange(400) % 7 == 0, (group + 1) % 4, group)  # every seventh sample in the next cell
    mixture = refine(points, np.eye(4)[start], 1e-4)
    found = mixture.predict(points)
    assert adjusted_rand_score(group, start) < 0.8
    assert (found == group).mean() > 0.99
    np.testing.assert_allclose(mixture.weights_, [0.4, 0.3, 0.2, 0.1], atol=0.02)


def test_refining_never_makes_the_mixture_less_likely() -> None:
    points, group = four_groups(2)
    cells = 0.7 * np.eye(4)[group] + 0.075
    once, more = (refine(points, start, 1e-6) for start in (cells, refine(points, cells, 1e-6).predict_proba(points)))
    assert once.score(points) >= classification_likelihood(points, cells, 1e-6)
    assert more.score(points) >= once.score(points) - 1e-6
