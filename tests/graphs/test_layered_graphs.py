from __future__ import annotations

import numpy as np
import pytest
from random_scores import brute_force, random_scores
from scipy.stats import chisquare

from causalpima.inference.graphs.exact_sums import (
    draw_dags,
    draw_exactly,
    draw_layers,
    draw_parents,
    graph_sums,
    layers_of,
)
from causalpima.inference.graphs.scores import best_dag

UNLIKELY = 1e-4
"""Tests with fixed seeds and this p-value: one in ten thousand seeds would fail a right program."""


def number_of(dags: np.ndarray) -> np.ndarray:
    flat = dags.reshape(len(dags), -1).astype(np.int64)
    return np.asarray(flat @ (1 << np.arange(flat.shape[1])))


def p_value(found: np.ndarray, possible: np.ndarray, probability: np.ndarray) -> float:
    """Of chi-squared; what is expected less than five times is taken together."""
    counts = np.array([(found == one).sum() for one in possible])
    assert counts.sum() == len(found)  # nothing that is impossible
    expected = probability * len(found)
    rare = expected < 5
    counts, expected = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    return float(chisquare(counts[expected > 0], expected[expected > 0]).pvalue)


def test_layers_are_longest_paths() -> None:
    #  0 -> 1 -> 2,  0 -> 2,  3,  3 -> 4
    dag = np.zeros((1, 5, 5), dtype=int)
    dag[0, [0, 1, 0, 3], [1, 2, 2, 4]] = 1
    assert layers_of(dag).tolist() == [[0, 1, 2, 0, 1]]


def test_parents_are_drawn_from_their_posterior() -> None:
    scores = np.random.default_rng(0).normal(0, 1, 32)
    sets = np.array([s for s in range(32) if s & 0b10110 == s and s & 0b00110])
    weights = np.exp(scores[sets])
    drawn = draw_parents(scores, 0b10110, 0b00110, 5000, np.random.default_rng(1))
    assert p_value(drawn, sets, weights / weights.sum()) > UNLIKELY


def test_drawn_graphs_have_the_layers_that_were_asked_for() -> None:
    layers = layers_of(brute_force(random_scores(4, 1.0, 0)).dags)
    np.testing.assert_array_equal(
        layers_of(draw_dags(random_scores(4, 1.0, 0), layers, np.random.default_rng(0))), layers
    )


@pytest.mark.parametrize(("n_nodes", "scale", "refused"), [(3, 1.0, 0.0), (4, 1.0, 0.4), (4, 200.0, 0.0)])
def test_graphs_are_drawn_from_their_posterior(n_nodes: int, scale: float, refused: float) -> None:
    scores = random_scores(n_nodes, scale, 1, refused)
    oracle = brute_force(scores)
    drawn = draw_exactly(graph_sums(scores), 20_000, np.random.default_rng(0))
    possible = oracle.probability > 0
    assert p_value(number_of(drawn), number_of(oracle.dags[possible]), oracle.probability[possible]) > UNLIKELY


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_draws_agree_with_sums_at_nine_nodes(scale: float) -> None:
    scores, n_draws = random_scores(9, scale, 2), 4000
    sums = graph_sums(scores)
    drawn, edges = draw_exactly(sums, n_draws, np.random.default_rng(0)), sums.edge_probability
    error = np.sqrt(edges * (1 - edges) / n_draws).clip(1 / n_draws)
    assert (abs(drawn.mean(0) - edges) / error).max() < 4.5


def test_the_graph_that_is_certain_is_drawn() -> None:
    scores = random_scores(8, 1.0, 7) * 1e4
    layers = draw_layers(graph_sums(scores), 20, np.random.default_rng(0))
    np.testing.assert_array_equal(layers, np.repeat(layers_of(best_dag(scores)[0][None]), 20, axis=0))
