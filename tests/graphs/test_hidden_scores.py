"""Scores over hidden nodes: BDeu of plain counts where nodes are seen, the sum over all completions where not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from causalpima.inference.graphs.dags import all_dags, class_codes
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.posterior import hidden_scores, scores_by_class
from causalpima.inference.graphs.scores import Score, family_scores

_BDEU = Score("bdeu", 2.0)


def _of_dags(codes: np.ndarray, outcomes: tuple[int, ...], dags: np.ndarray, score: Score) -> np.ndarray:
    local = family_scores(codes, outcomes, score)
    sets = (dags.astype(int) * (1 << np.arange(dags.shape[1]))[:, None]).sum(1)
    return local[np.arange(dags.shape[1]), sets].sum(1)


def _vague(seed: int, n: int, n_cells: int, overlap: float) -> np.ndarray:
    """log p(x_n | c) of normals in a row, [n, C]."""
    random = np.random.default_rng(seed)
    cells = random.choice(n_cells, n, p=random.dirichlet(np.ones(n_cells)))
    return -0.5 * ((cells + random.normal(0, overlap, n))[:, None] - np.arange(n_cells)) ** 2 / overlap**2


@pytest.mark.parametrize("score", [Score(), _BDEU, Score("bdeu", 10.0)])
def test_nodes_that_are_seen_score_as_their_plain_counts(score: Score) -> None:
    random = np.random.default_rng(0)
    codes = np.stack([random.integers(size, size=200) for size in (2, 3, 2)], axis=1)
    cells, dags = np.ravel_multi_index(tuple(codes.T), (2, 3, 2)), all_dags(3)
    with np.errstate(divide="ignore"):
        certain = np.log(np.eye(12)[cells])
    found = hidden_scores(certain, (2, 3, 2), dags, score)
    np.testing.assert_allclose(found, _of_dags(codes, (2, 3, 2), dags, score), rtol=1e-10)


def test_bdeu_is_below_the_sum_over_all_completions_by_much_the_same_for_all_graphs() -> None:
    """p(x) = sum over the cells of all samples of prod l_nc p(these cells), p the closed form of BDeu: 4^7 terms.

    With an overlap of half the distance the seven samples are 1.1 nats below, the two classes alike to 0.01.
    """
    dags, n = all_dags(2), 7
    completions = np.array(list(product(range(4), repeat=n)))
    orders, which = np.unique(np.sort(completions, axis=1), axis=0, return_inverse=True)  # scores are of counts alone
    nodes = np.stack(np.unravel_index(orders, (2, 2)), axis=-1)
    closed = np.array([_of_dags(codes, (2, 2), dags, _BDEU) for codes in nodes])[which]
    for overlap, behind in ((0.2, 0.01), (0.5, 1.2)):
        log_l = _vague(3, n, 4, overlap)
        likelihood = log_l[np.arange(n), completions].sum(1)
        exact = logsumexp(likelihood[:, None] + closed, axis=0)
        found = hidden_scores(log_l, (2, 2), dags, _BDEU)
        assert (found <= exact + 1e-9).all()
        assert (found >= exact - behind).all()
        assert np.ptp(found - exact) < 0.02


@pytest.mark.parametrize("score", [Score(), _BDEU])
def test_equivalent_graphs_score_alike(score: Score) -> None:
    log_l, dags = _vague(1, 150, 8, 0.5), all_dags(3)
    found, number = hidden_scores(log_l, (2, 2, 2), dags, score), class_codes(dags)
    by_class = scores_by_class(log_l, (2, 2, 2), dags, score)
    for code in np.unique(number):
        assert np.ptp(found[number == code]) < 2e-3
    np.testing.assert_allclose(by_class, found, atol=2e-3)
    assert np.ptp(found) > 1


@pytest.mark.parametrize("score", [Score(), _BDEU])
def test_replicates_that_weigh_a_half_count_once(score: Score) -> None:
    log_l, dags = _vague(2, 80, 4, 0.4), all_dags(2)
    twice = hidden_scores(np.repeat(log_l, 2, axis=0), (2, 2), dags, score, np.full(160, 0.5))
    np.testing.assert_allclose(twice, hidden_scores(log_l, (2, 2), dags, score), atol=1e-5)


def test_bic_is_that_of_the_exact_search() -> None:
    log_l, found = _vague(4, 120, 8, 0.4), score_classes(_vague(4, 120, 8, 0.4), (2, 2, 2))
    np.testing.assert_allclose(hidden_scores(log_l, (2, 2, 2), found.dags, Score()), found.bic, rtol=1e-12)


def test_constants_per_sample_are_constants() -> None:
    log_l, dags = _vague(5, 60, 4, 0.4), all_dags(2)
    shifted = hidden_scores(log_l + np.arange(60)[:, None], (2, 2), dags, _BDEU)
    np.testing.assert_allclose(shifted - np.arange(60).sum(), hidden_scores(log_l, (2, 2), dags, _BDEU), atol=1e-6)


def test_bdeu_without_its_size_is_refused() -> None:
    with pytest.raises(ValueError, match="score: expected BDeu with an equivalent sample size above 0, got none;"):
        hidden_scores(np.zeros((3, 4)), (2, 2), all_dags(2), Score("bdeu"))
