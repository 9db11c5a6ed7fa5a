"""The Bayesian bootstrap of p(N): Dirichlet moments where cells are certain, wider where they overlap."""

from __future__ import annotations

import numpy as np

from causalpima.inference.graphs.hidden import bootstrap_weights, fit_dags, mixture_shares
from causalpima.inference.graphs.interventions import factorised, node_marginals

COMPLETE = np.array([[0, 1], [0, 0]])
EMPTY = np.zeros((2, 2), dtype=int)
N_DRAWS = 4000


def certain(n: int) -> tuple[np.ndarray, np.ndarray]:
    cell = np.random.default_rng(0).choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    with np.errstate(divide="ignore"):
        return np.log(np.eye(4)[cell]), np.bincount(cell, minlength=4)


def test_certain_cells_have_the_dirichlet_posterior_of_their_counts() -> None:
    n = 120
    log_likelihood, counts = certain(n)
    weights = bootstrap_weights(n, None, N_DRAWS, np.random.default_rng(1))
    np.testing.assert_allclose(weights.sum(1), n)
    drawn = mixture_shares(log_likelihood, (2, 2), COMPLETE, weights).reshape(N_DRAWS, 4)
    mean = counts / n
    variance = mean * (1 - mean) / (n + 1)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=5 * np.sqrt(variance.max() / N_DRAWS))
    np.testing.assert_allclose(drawn.var(0), variance, rtol=5 * np.sqrt(2 / N_DRAWS))


def test_groups_count_once() -> None:
    n = 120
    log_likelihood, counts = certain(n)
    repeated, groups = np.repeat(log_likelihood, 4, axis=0), np.repeat(np.arange(n), 4)
    weights = bootstrap_weights(4 * n, groups, N_DRAWS, np.random.default_rng(1))
    assert (weights.reshape(N_DRAWS, n, 4).std(axis=2) == 0).all()
    drawn = mixture_shares(repeated, (2, 2), COMPLETE, weights).reshape(N_DRAWS, 4)
    mean = counts / n
    np.testing.assert_allclose(drawn.var(0), mean * (1 - mean) / (n + 1), rtol=5 * np.sqrt(2 / N_DRAWS))


def test_a_group_weighs_as_much_as_another_whatever_its_size() -> None:
    groups = np.array([0, 0, 0, 1])
    weights = bootstrap_weights(4, groups, N_DRAWS, np.random.default_rng(1))
    assert (np.ptp(weights[:, :3], axis=1) == 0).all()
    share = weights[:, 3] / 4  # of two groups: uniform on [0, 1]
    assert abs(share.mean() - 0.5) < 5 * np.sqrt(1 / 12 / N_DRAWS)


def test_without_weights_it_is_the_maximum_of_the_mixture_likelihood() -> None:
    rng = np.random.default_rng(2)
    log_likelihood = rng.normal(0, 1.5, (300, 4))
    for dag in (EMPTY, COMPLETE):
        shares = mixture_shares(log_likelihood, (2, 2), dag, np.ones((1, 300)))[0]
        np.testing.assert_allclose(
            factorised(shares, dag).reshape(-1),
            fit_dags(log_likelihood, (2, 2), dag[None], n_steps=5000, tolerance=1e-12).joint[0],
            atol=2e-4,
        )


def test_whole_weights_are_repetitions() -> None:
    rng = np.random.default_rng(3)
    log_likelihood, times = rng.normal(0, 1.5, (60, 4)), rng.integers(0, 4, 60)
    weighted = mixture_shares(log_likelihood, (2, 2), EMPTY, times[None].astype(float))
    repeated = np.repeat(log_likelihood, times, axis=0)
    np.testing.assert_allclose(
        weighted, mixture_shares(repeated, (2, 2), EMPTY, np.ones((1, len(repeated)))), atol=1e-9
    )


def test_overlap_makes_it_less_sure() -> None:
    """The same samples, seen through a read-out that tells the first node in 80 % of the cases only."""
    rng, n = np.random.default_rng(4), 400
    cell = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    wrong = rng.random(n) < 0.2
    seen = np.where(wrong, (cell + 2) % 4, cell)
    likelihood = 0.8 * np.eye(4)[seen] + 0.2 * np.eye(4)[(seen + 2) % 4]
    weights = bootstrap_weights(n, None, 400, np.random.default_rng(5))
    with np.errstate(divide="ignore"):
        of_certain = mixture_shares(np.log(np.eye(4)[cell]), (2, 2), COMPLETE, weights)
        of_blurred = mixture_shares(np.log(likelihood), (2, 2), COMPLETE, weights)
    certain_sd, blurred_sd = (node_marginals(part, 2)[0][:, 0].std() for part in (of_certain, of_blurred))
    # var of a share seen with error e: p'(1-p')/n / (1-2e)^2 against p(1-p)/n
    assert 1.3 < blurred_sd / certain_sd < 2.3
