"""How many steps EM takes is counted as by hand; a search that would take long is told from one that would not."""

from __future__ import annotations

import numpy as np

from causalpima.inference.graphs.enumeration import counts_are_quick, is_quick, steps_to_rest


def clusters(n: int, n_cells: int, overlap: float) -> np.ndarray:
    """log p(x | c) of clusters that overlap more or less."""
    rng = np.random.default_rng(0)
    cells = rng.choice(n_cells, n, p=rng.dirichlet(np.full(n_cells, 3.0)))
    return np.log(np.where(np.eye(n_cells)[cells] > 0, 1 - overlap, overlap / (n_cells - 1)))


def by_hand(log_likelihood: np.ndarray) -> int:
    share, before, step = np.full(log_likelihood.shape[1], 1 / log_likelihood.shape[1]), -np.inf, 0
    while True:
        joint = np.exp(log_likelihood) * share
        now = np.log(joint.sum(1)).sum()
        if now - before <= 1e-6:
            return step
        share, before, step = (joint / joint.sum(1, keepdims=True)).mean(0), now, step + 1


def test_steps_are_counted() -> None:
    for overlap in (0.01, 0.3):
        likelihood = clusters(400, 8, overlap)
        steps = by_hand(likelihood)
        assert steps_to_rest(likelihood, 500) == steps
        assert steps_to_rest(likelihood, steps + 1) == steps
        assert steps_to_rest(likelihood, steps) is None


def test_clean_clusters_are_searched_and_vague_ones_of_many_cells_are_not() -> None:
    assert is_quick(clusters(3000, 16, 0.02), (2, 2, 2, 2))
    assert not is_quick(clusters(3000, 16, 0.6), (2, 2, 2, 2))
    assert is_quick(clusters(3000, 8, 0.6), (2, 2, 2))
    assert not is_quick(clusters(300, 32, 0.02), (2, 2, 2, 2, 2))


def test_scoring_all_graphs_several_times_takes_longer() -> None:
    likelihood = clusters(3000, 16, 0.15)
    assert is_quick(likelihood, (2, 2, 2, 2))
    assert not is_quick(likelihood, (2, 2, 2, 2), 20)


def test_counts_behind_clusters_are_quick_for_few_cells() -> None:
    assert counts_are_quick(clusters(3000, 32, 0.02), (2,) * 5)
    assert not counts_are_quick(clusters(10000, 512, 0.9), (8,) * 3)
    assert not counts_are_quick(clusters(20, 512, 0.02), (2,) * 9)
    assert not counts_are_quick(clusters(20, 1125, 0.02), (5, 5, 5, 3, 3))
