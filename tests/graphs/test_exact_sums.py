from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from random_scores import brute_force, flat_scores, random_scores

from causalpima.inference.graphs.exact_sums import graph_sums, log_partition
from causalpima.inference.graphs.scores import best_dag, members, subsets_of, with_edge_prior

# Robinson (1973): how many labelled directed acyclic graphs there are.
COUNTS = (1, 3, 25, 543, 29281, 3781503, 1138779265, 783702329343, 1213442454842881, 4175098976430598143)


@pytest.mark.parametrize("n_nodes", range(1, 11))
def test_without_data_the_sum_counts_the_graphs(n_nodes: int) -> None:
    assert log_partition(flat_scores(n_nodes)) == pytest.approx(log(COUNTS[n_nodes - 1]), abs=1e-12)


@pytest.mark.parametrize("n_nodes", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("scale", "refused"), [(1.0, 0.0), (300.0, 0.0), (3.0, 0.6)])
def test_it_is_the_sum_over_all_graphs_one_by_one(n_nodes: int, scale: float, refused: float) -> None:
    scores = random_scores(n_nodes, scale, 0, refused)
    oracle, found = brute_force(scores), graph_sums(scores)
    assert found.log_total == pytest.approx(oracle.log_total, abs=1e-10)
    assert log_partition(scores) == pytest.approx(oracle.log_total, abs=1e-10)
    edges = np.einsum("g,gij->ij", oracle.probability, oracle.dags)
    np.testing.assert_allclose(found.edge_probability, edges, atol=1e-10)
    assert found.rounding < 1e-10


def test_the_prior_over_graphs_is_uniform_and_no_other() -> None:
    # A prior that is uniform over orders would give .25 (SCIENCE.md, section 3).
    edges = graph_sums(flat_scores(3)).edge_probability
    np.testing.assert_allclose(edges[~np.eye(3, dtype=bool)], 8 / 25, atol=1e-12)


def test_the_probability_of_parents_is_the_derivative_of_the_sum() -> None:
    scores, step = random_scores(7, 2.0, 3, refused=0.3), 1e-4
    found = graph_sums(scores).parent_set_probability
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-10)
    for node, parents in [(0, 0), (0, 6), (3, 1), (5, 66), (6, 63), (2, 80)]:
        shifted = np.zeros_like(scores)
        shifted[node, parents] = step
        slope = (log_partition(scores + shifted) - log_partition(scores - shifted)) / (2 * step)
        assert found[node, parents] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("strength", [0.0, 1e6])
def test_no_digits_are_lost_to_signs(strength: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    scores = random_scores(6, 3.0, 4)
    pair = members(np.arange(64), 6)
    scores[0] += strength * pair[:, 1]
    scores[1] += strength * pair[:, 0]
    found = graph_sums(scores)
    assert abs(float(_in_many_digits(scores, mpmath) - mpmath.mpf(found.log_total))) < 1e-9 + 1e-15 * abs(
        found.log_total
    )
    assert found.rounding < 1e-8


def _in_many_digits(scores: np.ndarray, mpmath: Any) -> Any:
    """The same recursion, as it stands in the paper, with 60 digits."""
    n_nodes = len(scores)
    with mpmath.workdps(60):
        weights = [[mpmath.exp(mpmath.mpf(float(value))) for value in row] for row in scores]
        within = [[mpmath.fsum(row[s] for s in subsets_of(u).tolist()) for u in range(2**n_nodes)] for row in weights]
        total = [mpmath.mpf(1)]
        for nodes in range(1, 2**n_nodes):
            total.append(mpmath.mpf(0))
            for sinks in subsets_of(nodes).tolist()[1:]:
                term = total[nodes ^ sinks] * (-1) ** (sinks.bit_count() + 1)
                for node in np.flatnonzero(members(np.array(sinks), n_nodes)):
                    term *= within[node][nodes ^ sinks]
                total[nodes] += term
        return mpmath.log(total[-1])


def test_summed_from_roots_and_from_sinks_the_total_is_the_same() -> None:
    scores = random_scores(9, 20.0, 5, refused=0.2)
    found = graph_sums(scores)
    assert found.log_after[0] + scores.max(1).sum() == pytest.approx(found.log_total, abs=1e-9)


def test_a_required_edge_is_certain_and_a_forbidden_one_impossible() -> None:
    scores = random_scores(6, 1.0, 6)
    having = members(np.arange(64), 6)
    scores[2, ~having[:, 4]] = -np.inf  # 4 -> 2
    scores[1, having[:, 0]] = -np.inf  # no 0 -> 1
    edges = graph_sums(scores).edge_probability
    assert edges[4, 2] == pytest.approx(1.0, abs=1e-12)
    assert edges[2, 4] == edges[0, 1] == 0.0


def test_a_graph_that_data_force_is_certain() -> None:
    scores = random_scores(8, 1.0, 7) * 50
    best, probability = best_dag(scores)[0], graph_sums(scores).edge_probability
    np.testing.assert_allclose(probability, best, atol=0.02)


def test_an_edge_prior_makes_edges_rarer() -> None:
    scores = flat_scores(5)
    odds = np.full((5, 5), -2.0)
    weights = np.exp(np.einsum("gij,ij->g", (oracle := brute_force(scores)).dags, odds))
    found = graph_sums(with_edge_prior(scores, odds))
    assert found.log_total == pytest.approx(log(weights.sum()))
    wanted = np.einsum("g,gij->ij", weights / weights.sum(), oracle.dags)
    np.testing.assert_allclose(found.edge_probability, wanted, atol=1e-12)


def test_a_cycle_of_required_edges_is_refused() -> None:
    scores = flat_scores(2)
    scores[0, 0] = scores[1, 0] = -np.inf
    with pytest.raises(ValueError, match="expected a table that allows a graph"):
        graph_sums(scores)
    assert log_partition(scores) == -np.inf
