from __future__ import annotations

import numpy as np
import pytest
from random_scores import brute_force, flat_scores, random_scores

from causalpima.inference.graphs.dags import cpdag, is_acyclic, permute_nodes
from causalpima.inference.graphs.scores import (
    best_after,
    best_dag,
    best_within,
    check_scores,
    family_scores,
    maxima_over_subsets,
    members,
    score_of_dag,
    with_edge_prior,
)


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("scale", "refused"), [(1.0, 0.0), (300.0, 0.0), (3.0, 0.6)])
def test_it_is_the_best_of_all_graphs(n_nodes: int, scale: float, refused: float) -> None:
    for seed in range(3):
        scores = random_scores(n_nodes, scale, seed, refused)
        oracle = brute_force(scores)
        dag, score = best_dag(scores)
        assert score == oracle.scores.max()
        np.testing.assert_array_equal(dag, oracle.dags[oracle.scores.argmax()])


def test_of_graphs_that_tie_the_emptiest_is_taken() -> None:
    dag, score = best_dag(flat_scores(6))
    assert not dag.any()
    assert score == 0.0


def test_a_required_edge_is_there() -> None:
    scores = flat_scores(4)
    scores[2, members(np.arange(16), 4)[:, 3] == 0] = -np.inf  # 3 -> 2
    scores[:, 1:] -= 5.0
    assert np.argwhere(best_dag(scores)[0]).tolist() == [[3, 2]]


def test_a_cycle_of_required_edges_is_refused() -> None:
    scores = flat_scores(2)
    scores[0, 0] = scores[1, 0] = -np.inf  # 0 -> 1 -> 0
    with pytest.raises(ValueError, match="expected a table that allows a graph"):
        best_dag(scores)


def test_the_order_of_the_columns_changes_nothing() -> None:
    #  0 -> 2 <- 1,  2 -> 3 -> 4 <- 5
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, size=(2000, 6))
    for child, parents in ((2, (0, 1)), (3, (2,)), (4, (3, 5))):
        codes[:, child] = (codes[:, list(parents)].sum(1) > len(parents) / 2) ^ (generator.random(2000) < 0.1)
    found, score = best_dag(family_scores(codes, [2] * 6))
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(6)
        permuted, same = best_dag(family_scores(codes[:, order], [2] * 6))
        assert same == pytest.approx(score, abs=1e-8)
        np.testing.assert_array_equal(cpdag(permuted), permute_nodes(cpdag(found), order.tolist()))


def test_at_ten_nodes_it_is_acyclic_and_no_single_change_is_better() -> None:
    scores = random_scores(10, 5.0, 0)
    dag, score = best_dag(scores)
    assert bool(is_acyclic(dag))
    for i, j in np.ndindex(10, 10):
        other = dag.copy()
        other[i, j] ^= 1
        assert i == j or not bool(is_acyclic(other)) or score_of_dag(scores, other) < score


def test_best_of_the_rest_is_the_best_when_the_set_comes_first() -> None:
    scores = random_scores(4, 2.0, 1)
    best, oracle = maxima_over_subsets(scores), brute_force(scores)
    inside, after = best_within(best), best_after(best)
    assert after[0] == pytest.approx(inside[-1])
    for nodes in range(16):
        within = members(np.array(nodes), 4)
        closed = ~oracle.dags[:, ~within][:, :, within].any((1, 2))
        assert inside[nodes] + after[nodes] == pytest.approx(oracle.scores[closed].max())


def test_exact_search_of_another_library_agrees() -> None:
    search = pytest.importorskip("causallearn.search.ScoreBased.ExactSearch").bic_exact_search
    generator = np.random.default_rng(3)
    cause = generator.normal(size=(300, 5))
    mixing = np.triu(generator.normal(size=(5, 5)) * (generator.random((5, 5)) < 0.5), 1)
    values = cause @ np.linalg.inv(np.eye(5) - mixing)
    found, _ = search(values, search_method="dp")
    np.testing.assert_array_equal(cpdag(best_dag(_gaussian_bic(values))[0]), cpdag(found.astype(int)))


def _gaussian_bic(values: np.ndarray) -> np.ndarray:
    """The score of that library: of a linear Gaussian node with each set of parents."""
    n, n_nodes = values.shape
    centred = values - values.mean(0)
    scores = np.full((n_nodes, 2**n_nodes), -np.inf)
    for node, parents in np.ndindex(scores.shape):
        if not parents >> node & 1:
            given = centred[:, members(np.array(parents), n_nodes)]
            residual = centred[:, node] - given @ np.linalg.lstsq(given, centred[:, node], rcond=None)[0]
            scores[node, parents] = -n / 2 * np.log((residual**2).mean()) - np.log(n) / 2 * given.shape[1]
    return scores


def test_an_edge_prior_adds_its_log_odds() -> None:
    scores, odds = random_scores(4, 1.0, 2), np.arange(16.0).reshape(4, 4)
    prior = with_edge_prior(scores, odds)
    for dag in brute_force(scores).dags[::40]:
        assert score_of_dag(prior, dag) == pytest.approx(score_of_dag(scores, dag) + odds[dag == 1].sum())
    np.testing.assert_array_equal(with_edge_prior(scores, -1.0), with_edge_prior(scores, np.full((4, 4), -1.0)))


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (np.zeros((3, 4)), r"expected \[L, 2\^L\]"),
        (np.zeros((21, 4)), r"L from 1 to 20"),
        (np.full((1, 2), np.nan), "NaN"),
        (np.full((1, 2), np.inf), r"\+inf"),
        (np.zeros((1, 2)), "its own parent"),
        (np.full((1, 2), -np.inf), "none for node 0"),
    ],
)
def test_what_is_no_table_of_scores_is_refused(scores: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_scores(scores)


def test_an_edge_prior_must_be_finite() -> None:
    with pytest.raises(ValueError, match="expected finite"):
        with_edge_prior(flat_scores(2), np.full((2, 2), np.inf))
