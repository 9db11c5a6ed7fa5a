"""Likelihoods of graphs under a mixture: closed forms, numerical optimisation, and what labels taken for certain do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from test_cpdag import graph

from causalpima.inference.graphs.dags import all_dags, class_codes, cpdag
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.hidden import count_parameters, fit_dags, log_likelihood_ratio, score_dag


def known(cells: np.ndarray, n_cells: int) -> np.ndarray:
    """log p(x | c) of samples whose cell is known."""
    with np.errstate(divide="ignore"):
        return np.log(np.eye(n_cells)[cells])


def vague(seed: int, n: int, n_cells: int) -> np.ndarray:
    """Overlapping clusters of unequal size."""
    rng = np.random.default_rng(seed)
    place = rng.choice(n_cells, n, p=rng.dirichlet(np.ones(n_cells)))
    return -0.5 * (place[:, None] + rng.normal(0, 0.6, (n, 1)) - np.arange(n_cells)) ** 2 / 0.36


def entropy(values: np.ndarray) -> float:
    share = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(share * np.log(share)).sum())


def test_known_cells_give_the_closed_form() -> None:
    #  0 -> 1 -> 2:  log L = -n (H(0) + H(0,1) - H(0) + H(1,2) - H(1))
    cells = np.random.default_rng(0).choice(12, 300, p=np.random.default_rng(1).dirichlet(np.ones(12)))
    a, b, c = np.unravel_index(cells, (2, 3, 2))
    expected = -300 * (entropy(3 * a + b) + entropy(2 * b + c) - entropy(b))
    value, n_parameters = score_dag(known(cells, 12), (2, 3, 2), graph(3, (0, 1), (1, 2)))
    assert value == pytest.approx(expected, rel=1e-12)
    assert n_parameters == 1 + 2 * 2 + 3 * 1


def test_a_complete_graph_reaches_the_maximum_over_all_mixing_weights() -> None:
    # Lindsay 1983: weights are best exactly if sum_n l_nc / p(x_n) <= n, with equality where the weight is positive.
    log_l = vague(0, 200, 6)
    found = fit_dags(log_l, (2, 3), np.array([graph(2, (0, 1))]), n_steps=20000, tolerance=1e-12)
    gradient = (np.exp(log_l) / (np.exp(log_l) @ found.joint[0])[:, None]).mean(0)
    assert gradient.max() < 1 + 1e-4
    np.testing.assert_allclose(gradient[found.joint[0] > 1e-3], 1, atol=1e-4)


@pytest.mark.parametrize("dag", [graph(2), graph(2, (1, 0))])
def test_em_agrees_with_numerical_optimisation(dag: np.ndarray) -> None:
    log_l = vague(1, 150, 4)

    def loss(logits: np.ndarray) -> float:
        first, zero, one = (1 / (1 + np.exp(-value)) for value in logits)
        second = np.array([zero, one if dag.any() else zero])
        by_second = np.stack([1 - second, second])
        joint = np.stack([1 - first, first])[:, None] * by_second.T  # p(N2) p(N1 | N2) in the order [N2, N1]
        joint = joint.T if dag[1, 0] else joint
        return float(-np.log(np.exp(log_l) @ joint.reshape(-1)).sum())

    best = min(
        minimize(loss, start, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-9}).fun
        for start in ([0.1, -0.2, 0.3], [1.0, 1.0, -1.0], [-1.0, 0.5, 2.0])
    )
    assert score_dag(log_l, (2, 2), dag, n_steps=20000, tolerance=1e-11)[0] == pytest.approx(-best, abs=1e-4)


def test_equivalent_graphs_score_alike_and_larger_ones_no_worse() -> None:
    log_l, dags = vague(2, 120, 8), all_dags(3)
    values = fit_dags(log_l, (2, 2, 2), dags, n_steps=5000, tolerance=1e-10).log_likelihood
    for code in np.unique(class_codes(dags)):
        assert np.ptp(values[class_codes(dags) == code]) < 1e-4
    complete = values[[count_parameters(dag, (2, 2, 2)) == 7 for dag in dags]].min()
    assert (values <= complete + 1e-4).all()


def test_constants_per_sample_and_order_of_graphs_play_no_part() -> None:
    log_l, dags = vague(3, 60, 4), all_dags(2)
    plain = fit_dags(log_l, (2, 2), dags)
    shifted = fit_dags(log_l + np.arange(60)[:, None], (2, 2), dags[::-1])
    np.testing.assert_allclose(shifted.log_likelihood[::-1], plain.log_likelihood + np.arange(60).sum(), rtol=1e-12)
    np.testing.assert_allclose(plain.joint.sum(1), 1)


def chain_with_errors(n: int, error: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes h -> r -> s with the tables of circles_chain, and r read wrongly in a share of the samples."""
    rng = np.random.default_rng(5)
    h = (rng.random(n) < 0.5).astype(int)
    r = (rng.random(n) < np.array([0.3, 0.75])[h]).astype(int)
    s = (rng.random(n) < np.array([0.2, 0.7])[r]).astype(int)
    read = np.where(rng.random(n) < error, 1 - r, r)
    cells = np.arange(8)
    right = (cells // 4 == h[:, None]) & (cells % 2 == s[:, None])
    agrees = cells // 2 % 2 == read[:, None]
    with np.errstate(divide="ignore"):
        likelihood = np.log(np.where(right, np.where(agrees, 1 - error, error), 0.0))
    return likelihood, 4 * h + 2 * read + s


def test_labels_taken_for_certain_buy_an_edge_that_the_mixture_likelihood_does_not() -> None:
    #  h -> r -> s, r read wrongly in 5 %: given the reading, h and s stay dependent
    likelihood, cells = chain_with_errors(20000, 0.05)
    truth = cpdag(graph(3, (0, 1), (1, 2)))
    np.testing.assert_array_equal(score_classes(likelihood, (2, 2, 2)).best, truth)
    certain = score_classes(known(cells, 8), (2, 2, 2))
    assert certain.best.sum() == 6
    assert certain.gap is not None
    assert certain.gap > 3


def test_classes_are_ranked_with_ties_and_gap() -> None:
    rng = np.random.default_rng(0)
    log_l = known(rng.integers(0, 8, 400), 8)
    found = score_classes(log_l, (2, 2, 2))
    assert len(found.bic) == 11
    assert (np.diff(found.bic) <= 0).all()
    assert found.gap == pytest.approx(found.bic[0] - found.bic[1])
    assert found.n_tied == 1
    assert not found.best.any()
    np.testing.assert_allclose(found.bic, found.log_likelihood - found.n_parameters / 2 * np.log(400))
    # Nothing known: every graph without an edge, or with one, has the same likelihood; parameters decide.
    assert score_classes(np.zeros((50, 8)), (2, 2, 2)).n_parameters[0] == 3
    assert score_classes(log_l, (2, 2, 2), n_samples=100).bic[0] > found.bic[0]
    assert score_classes(known(np.arange(6) % 2, 2), (2,)).gap is None


def test_likelihoods_come_back_from_responsibilities() -> None:
    rng = np.random.default_rng(1)
    log_l, joint = vague(4, 80, 4), rng.dirichlet(np.ones(4))
    joined = np.log(joint) + log_l
    r = np.exp(joined - np.logaddexp.reduce(joined, axis=1, keepdims=True))
    difference = log_likelihood_ratio(r, joint) - log_l
    np.testing.assert_allclose(difference, difference[:, :1].repeat(4, 1), atol=1e-9)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"log_likelihood: expected shape \[sample, 4\], got \(5, 3\)"):
        fit_dags(np.zeros((5, 3)), (2, 2), all_dags(2))
    with pytest.raises(ValueError, match="log_likelihood: expected a finite entry in every row"):
        fit_dags(np.full((5, 4), -np.inf), (2, 2), all_dags(2))
    with pytest.raises(ValueError, match="joint: expected"):
        log_likelihood_ratio(np.ones((3, 4)), np.ones(3))
    with pytest.raises(ValueError, match="responsibilities: expected a positive finite entry"):
        log_likelihood_ratio(np.zeros((3, 4)), np.full(4, 0.25))
