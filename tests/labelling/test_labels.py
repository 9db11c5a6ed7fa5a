"""Clusters named by labels, against brute force over every bijection."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from causalpima.inference.clusters.labels import UNKNOWN, allowed_cells, assign_cells, labelled_mass

OUTCOMES = (2, 3)
CELLS = list(product(range(2), range(3)))


def some_codes(n: int, seed: int, known: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, count, n) for count in OUTCOMES], axis=1)
    codes[rng.random(codes.shape) > known] = UNKNOWN
    return codes


@given(arrays(np.int64, (4, 2), elements=st.integers(-1, 1)))
def test_allowed_cells_are_those_that_agree_with_every_label(codes: np.ndarray) -> None:
    allowed = allowed_cells(codes, OUTCOMES)
    for row, of_row in zip(codes, allowed, strict=True):
        for cell, outcomes in enumerate(CELLS):
            agrees = all(code in (UNKNOWN, outcome) for code, outcome in zip(row, outcomes, strict=True))
            assert of_row[cell] == agrees


@pytest.mark.parametrize("known", [1.0, 0.5])
def test_mass_counts_joint_outcomes_and_a_tenth_of_every_label(known: float) -> None:
    codes, r = some_codes(30, 0, known), np.random.default_rng(1).dirichlet(np.ones(6), 30)
    expected = np.zeros((6, 6))
    for weights, code in zip(r, codes, strict=True):
        labels = [node for node in range(2) if code[node] != UNKNOWN]
        for (cluster, weight), (cell, outcomes) in product(enumerate(weights), enumerate(CELLS)):
            right = [outcomes[node] == code[node] for node in labels]
            if labels:
                expected[cluster, cell] += weight * (all(right) + 0.1 * sum(right))
    np.testing.assert_allclose(labelled_mass(r, codes, OUTCOMES), expected, rtol=1e-12)


def test_samples_without_labels_do_not_count() -> None:
    codes, r = some_codes(20, 0), np.random.default_rng(1).dirichlet(np.ones(6), 20)
    more = np.concatenate([codes, np.full((5, 2), UNKNOWN)]), np.concatenate([r, np.eye(6)[:5]])
    np.testing.assert_allclose(labelled_mass(more[1], more[0], OUTCOMES), labelled_mass(r, codes, OUTCOMES))


@given(arrays(np.float64, (4, 4), elements=st.integers(0, 20).map(float)))
def test_the_assignment_is_the_best_of_all_bijections(scores: np.ndarray) -> None:
    found = assign_cells(scores)
    best = max(sum(scores[c, p[c]] for c in range(4)) for p in permutations(range(4)))
    assert scores[np.arange(4), found].sum() == best


@pytest.mark.parametrize("seed", range(5))
def test_labels_of_every_sample_recover_any_numbering(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbering, cells = rng.permutation(6), rng.integers(0, 6, 200)
    clusters = np.argsort(numbering)[cells]
    codes = np.array(CELLS)[cells]
    np.testing.assert_array_equal(assign_cells(labelled_mass(np.eye(6)[clusters], codes, OUTCOMES)), numbering)


def test_a_cluster_may_not_take_the_cell_of_another_as_majority_votes_do() -> None:
    # Cluster 1 has one label, wrongly that of cluster 0: by majority both would be cell 0.
    codes = np.array([[0, 0]] * 3 + [[0, 0]] + [[0, 2]] * 2 + [[1, 0]] * 2 + [[1, 1]] * 2 + [[1, 2]] * 2)
    clusters = [0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert assign_cells(labelled_mass(np.eye(6)[clusters], codes, OUTCOMES)).tolist() == list(range(6))


def test_single_labels_decide_where_joint_ones_do_not() -> None:
    # Clusters 4 and 5 have no sample with both labels; cluster 4 has one that tells the second node.
    codes = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [UNKNOWN, 2]])
    clusters = [0, 1, 2, 3, 4]
    assert assign_cells(labelled_mass(np.eye(6)[clusters], codes, OUTCOMES)).tolist() == [0, 1, 2, 3, 5, 4]


def test_labels_of_one_node_fill_its_slots_and_leave_the_rest_as_it_was() -> None:
    clusters = np.repeat(np.arange(6), 4)
    first = np.array([1, 0, 0, 1, 1, 0])[clusters]
    codes = np.stack([first, np.full(24, UNKNOWN)], axis=1)
    found = assign_cells(labelled_mass(np.eye(6)[clusters], codes, OUTCOMES))
    assert sorted(found) == list(range(6))
    assert (found // 3).tolist() == [1, 0, 0, 1, 1, 0]
    kept = [cluster for cluster in range(6) if found[cluster] == cluster]
    assert kept == [1, 2, 3, 4], "clusters whose number agrees with the labels keep it"


@pytest.mark.parametrize("scores", [np.ones((2, 3)), np.array([[np.nan, 1.0], [0.0, 1.0]])])
def test_odd_scores_are_refused(scores: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"^scores: expected finite ones, a row per cluster"):
        assign_cells(scores)
