from __future__ import annotations

import numpy as np
import pytest
from random_scores import flat_scores, random_scores

from causalpima.inference.graphs.dags import is_acyclic
from causalpima.inference.graphs.exact_sums import graph_sums
from causalpima.inference.graphs.partition_mcmc import partition_chains
from causalpima.inference.graphs.scores import family_scores, members, score_of_dag
from causalpima.inference.store.arviz import convergence


@pytest.mark.parametrize("table", [flat_scores(6), random_scores(7, 2.0, 0), random_scores(6, 3.0, 1, refused=0.3)])
def test_chains_agree_with_exact_sums_within_their_error(table: np.ndarray) -> None:
    dags = partition_chains(table, n_chains=4, n_draws=300).dags
    exact = graph_sums(table).edge_probability
    r_hat, ess, _ = convergence(dags)
    varies = np.isfinite(ess)
    error = np.sqrt(exact * (1 - exact) / np.where(varies, ess, 1200)).clip(1e-3)
    assert (abs(dags.mean((0, 1)) - exact) / error).max() < 4.5
    assert r_hat[varies].max() < 1.05


def test_edges_that_are_certain_are_turned_round() -> None:
    # 0 - 1 - 2 - 3, strong: a quarter each has its root at 0, 1, 2, 3, and no move of one node leads from 1 to 2.
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, size=(2000, 4))
    for node in (1, 2, 3):
        codes[:, node] = codes[:, node - 1] ^ (generator.random(2000) < 0.05)
    table = family_scores(codes, [2] * 4)
    dags = partition_chains(table, n_chains=2, n_draws=300, seed=1).dags
    np.testing.assert_allclose(dags.mean(1), [graph_sums(table).edge_probability] * 2, atol=0.1)


def test_what_is_known_holds_in_every_graph() -> None:
    table, having = random_scores(6, 1.0, 2), members(np.arange(64), 6)
    table[2, ~having[:, 4]] = -np.inf  # 4 -> 2
    table[1, having[:, 0]] = -np.inf  # no 0 -> 1
    chains = partition_chains(table, n_chains=2, n_draws=50)
    assert chains.dags[:, :, 4, 2].all()
    assert not chains.dags[:, :, 0, 1].any()
    assert bool(is_acyclic(chains.dags).all())
    assert chains.log_scores[1, 7] == pytest.approx(score_of_dag(table, chains.dags[1, 7]))


def test_a_seed_gives_the_same_graphs() -> None:
    one, other, another = (partition_chains(random_scores(5, 1.0, 3), 2, 20, seed).dags for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, other)
    assert (one != another).any()
