"""How far labels settle a labelling, against brute force over exchanges and over samples that are left out."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from causalpima.inference.clusters.labels import (
    UNKNOWN,
    assign_cells,
    certainty,
    exchange_gaps,
    is_beyond_chance,
    labelled_mass,
    left_out_agreement,
    unlabelled_combinations,
)

OUTCOMES = (2, 2, 2)
CELLS = np.array(list(product(range(2), repeat=3)))
ALL = np.ones(3, dtype=bool)


def draw(n: int, seed: int, n_labelled: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pure clusters under other numbers, their responsibilities, and right labels of some samples."""
    rng = np.random.default_rng(seed)
    numbering, cells = rng.permutation(8), rng.integers(0, 8, n)
    codes = np.where((np.arange(n) < n_labelled)[:, None], CELLS[cells], UNKNOWN)
    return numbering, np.eye(8)[np.argsort(numbering)[cells]], codes


def test_gaps_are_the_differences_of_total_scores() -> None:
    scores = np.random.default_rng(0).random((6, 6)) * 5
    best = assign_cells(scores)
    gaps = exchange_gaps(scores, best)
    for c, d in combinations(range(6), 2):
        other = best.copy()
        other[[c, d]] = best[[d, c]]
        expected = scores[range(6), best].sum() - scores[range(6), other].sum()
        assert gaps[c, d] == pytest.approx(expected)
        assert expected >= 0
    np.testing.assert_allclose(gaps, gaps.T)


@pytest.mark.parametrize("seed", range(40))
def test_nodes_that_few_labels_settle_are_right_and_others_are_told(seed: int) -> None:
    numbering, r, codes = draw(400, seed, 12)
    mass = labelled_mass(r, codes, OUTCOMES)
    found = assign_cells(mass)
    left_open = certainty(mass, found, OUTCOMES, ALL)
    wrong = (CELLS[found] != CELLS[numbering]).any(axis=0)
    assert not (wrong & ~left_open.unsettled_nodes).any()
    assert left_open.gap is not None
    assert (left_open.gap < 1) == (len(left_open.unsettled_cells) > 0) == left_open.unsettled_nodes.any()


def test_a_wrong_labelling_by_few_labels_is_among_these() -> None:
    """Else the test above says nothing: labels of every sample agree, and nodes are wrong."""
    drawn = [draw(400, seed, 12) for seed in range(40)]
    found = [assign_cells(labelled_mass(r, codes, OUTCOMES)) for _, r, codes in drawn]
    assert sum((one != numbering).any() for one, (numbering, *_) in zip(found, drawn, strict=True)) > 5


@pytest.mark.parametrize("seed", range(5))
def test_enough_labels_settle_everything(seed: int) -> None:
    numbering, r, codes = draw(400, seed, 200)
    mass = labelled_mass(r, codes, OUTCOMES)
    left_open = certainty(mass, numbering, OUTCOMES, ALL)
    assert left_open.gap is not None
    assert left_open.gap > 10
    assert not left_open.unsettled_nodes.any()
    assert not len(left_open.unsettled_cells)


def test_clusters_that_differ_in_nodes_without_labels_are_no_other_labelling() -> None:
    numbering, r, codes = draw(400, 0, 200)
    codes[:, 1:] = UNKNOWN
    mass = labelled_mass(r, codes, OUTCOMES)
    left_open = certainty(mass, assign_cells(mass), OUTCOMES, np.array([True, False, False]))
    assert not left_open.unsettled_nodes.any()
    nothing = certainty(np.zeros((8, 8)), numbering, OUTCOMES, ~ALL)
    assert nothing.gap is None


def test_a_single_label_against_another_settles_nothing() -> None:
    # Clusters 0 and 1 share what their three labels say: two against one for the one cell, one for the other.
    scores = np.array([[2.0, 1.0], [1.5, 1.0]])
    left_open = certainty(scores, np.arange(2), (2,), np.array([True]))
    assert left_open.gap == pytest.approx(0.5)
    assert left_open.unsettled_cells.tolist() == [0, 1]


def test_combinations_without_a_sample_that_has_all_labels() -> None:
    codes = np.array([[0, 0], [0, 2], [1, UNKNOWN], [UNKNOWN, 1], [1, 1]])
    assert unlabelled_combinations(codes, (2, 3)) == [(0, 1), (1, 0), (1, 2)]
    assert len(unlabelled_combinations(np.full((4, 2), UNKNOWN), (2, 3))) == 6


@pytest.mark.parametrize("known", [1.0, 0.6])
def test_left_out_agreement_is_that_of_naming_anew_without_each_sample(known: float) -> None:
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 8, 40)
    r = 0.6 * np.eye(8)[cells] + 0.4 * rng.dirichlet(np.ones(8), 40)
    codes = np.where(rng.random((40, 3)) < known, CELLS[cells], UNKNOWN)
    codes[:12] = np.where(codes[:12] == UNKNOWN, UNKNOWN, rng.integers(0, 2, (12, 3)))
    right, there = np.zeros(3), (codes != UNKNOWN).sum(0)
    for i in range(40):
        others = np.arange(40) != i
        named = CELLS[assign_cells(labelled_mass(r[others], codes[others], OUTCOMES))[r[i].argmax()]]
        right += (named == codes[i]) & (codes[i] != UNKNOWN)
    assert left_out_agreement(r, codes, OUTCOMES) == pytest.approx(list(right / there))


def test_many_labels_are_left_out_in_tenths() -> None:
    _, r, codes = draw(400, 0, 300)
    assert left_out_agreement(r, codes, OUTCOMES) == [1.0, 1.0, 1.0]


def test_labels_that_tell_nothing_agree_by_chance_only() -> None:
    """In-sample, the best of 8! labellings of drawn labels agrees with far more than half of them."""
    shares, within = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        r, codes = np.eye(8)[rng.integers(0, 8, 12)], rng.integers(0, 2, (12, 3))
        shares.append(np.array(left_out_agreement(r, codes, OUTCOMES), dtype=float))
        found = assign_cells(labelled_mass(r, codes, OUTCOMES))
        within.append((CELLS[found[r.argmax(1)]] == codes).mean())
    mean, error = np.mean(shares), np.mean(shares, axis=1).std() / np.sqrt(60)
    assert mean < 0.5 + 3 * error
    assert np.mean(within) > 0.7


def test_nothing_is_left_out_of_one_label() -> None:
    codes = np.full((5, 3), UNKNOWN)
    codes[0] = 0
    assert left_out_agreement(np.eye(8)[:5], codes, OUTCOMES) == [None, None, None]
    codes[1, 0] = 1
    assert left_out_agreement(np.eye(8)[:5], codes, OUTCOMES)[1] is not None


def test_agreement_no_better_than_the_most_frequent_label_is_chance() -> None:
    codes = np.repeat([0, 1, UNKNOWN], [60, 40, 10])
    assert is_beyond_chance(0.95, codes)
    assert not is_beyond_chance(0.62, codes)
    assert not is_beyond_chance(1.0, np.zeros(50, dtype=int))  # one level tells nothing
    assert is_beyond_chance(0.5, np.array([0, 1, 0, 1]))  # too few to test
