from __future__ import annotations

import numpy as np
import pytest
from random_scores import BruteForce, brute_force, random_scores
from test_layered_graphs import UNLIKELY, number_of, p_value

from causalpima.inference.graphs.exact_sums import draw_parents, layers_of
from causalpima.inference.graphs.partition_mcmc import (
    MOVES,
    Layers,
    Move,
    Parents,
    PartitionScore,
    descendants,
    reverse_an_edge,
    split_or_join,
    swap_any,
)
from causalpima.inference.graphs.scores import members


def as_layers(layer: np.ndarray) -> Layers:
    return tuple(int((1 << np.flatnonzero(layer == k)).sum()) for k in range(layer.max() + 1))


def as_parents(dag: np.ndarray) -> Parents:
    return tuple(((dag == 1).T @ (1 << np.arange(len(dag)))).tolist())


def partitions(oracle: BruteForce) -> dict[Layers, float]:
    """Probability of all layers."""
    found: dict[Layers, float] = {}
    for layer, probability in zip(layers_of(oracle.dags), oracle.probability, strict=True):
        found[as_layers(layer)] = found.get(as_layers(layer), 0.0) + probability
    return found


@pytest.mark.parametrize(("scale", "refused"), [(1.0, 0.0), (200.0, 0.0), (3.0, 0.5)])
def test_layers_weigh_as_much_as_their_graphs(scale: float, refused: float) -> None:
    scores = random_scores(4, scale, 0, refused)
    score, oracle = PartitionScore(scores), brute_force(scores)
    for layers, probability in partitions(oracle).items():
        log_weight = score.total(layers) + scores.max(1).sum() - oracle.log_total
        np.testing.assert_allclose(np.exp(log_weight), probability, rtol=1e-6, atol=1e-300)


def test_a_difference_that_leaves_no_digits_is_summed_one_by_one() -> None:
    scores = random_scores(4, 1.0, 1)
    scores[3, [2, 3, 6, 7]] += 60.0  # 3 needs 1
    scores[3, [4, 5]] = -800.0
    found = PartitionScore(scores).node(3, 0b0111, 0b0101)
    sets = np.array([1, 3, 4, 5, 6, 7])
    assert found == pytest.approx(np.logaddexp.reduce(scores[3, sets]) - scores[3].max(), abs=1e-12)
    scores[3, [3, 6, 7]] -= 100.0
    found = PartitionScore(scores).node(3, 0b0111, 0b0101)
    assert found == pytest.approx(np.logaddexp.reduce(scores[3, sets]) - scores[3].max(), abs=1e-12)


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_parents_drawn_best_first_have_the_same_distribution(scale: float) -> None:
    scores, score = (table := random_scores(11, scale, 3))[0], PartitionScore(table)
    within, hitting, generator = 0b11011111110, 0b1100, np.random.default_rng(0)
    drawn = np.array([score.draw_parents(0, within, hitting, generator) for _ in range(3000)])
    sets = np.arange(2**11)
    sets = sets[(sets & ~within == 0) & (sets & hitting != 0)]
    weights = np.exp(scores[sets] - scores[sets].max())
    assert p_value(drawn, sets, weights / weights.sum()) > UNLIKELY
    assert len(set(draw_parents(scores, within, hitting, 100, generator)) - set(sets)) == 0


@pytest.mark.parametrize("move", [move for move, _ in MOVES], ids=lambda move: move.__name__)
@pytest.mark.parametrize("refused", [0.0, 0.5])
def test_every_move_of_layers_leaves_the_posterior_as_it_is(move: Move, refused: float) -> None:
    scores, generator = random_scores(3, 1.0, 4, refused), np.random.default_rng(5)
    weights, score = partitions(brute_force(scores)), PartitionScore(scores)
    possible = [layers for layers, weight in weights.items() if weight > 0]
    probability = np.array([weights[layers] for layers in possible])
    starts = generator.choice(len(possible), size=8000, p=probability / probability.sum())
    ends = np.array([possible.index(move(possible[start], score, generator)) for start in starts])
    assert p_value(ends, np.arange(len(possible)), probability) > UNLIKELY
    assert (ends != starts).any()


def test_the_reversal_of_an_edge_leaves_the_posterior_as_it_is() -> None:
    scores, generator = random_scores(4, 1.0, 6, refused=0.2), np.random.default_rng(7)
    oracle, score = brute_force(scores), PartitionScore(scores)
    possible = oracle.probability > 0
    dags, probability = oracle.dags[possible], oracle.probability[possible]
    starts = generator.choice(len(dags), size=8000, p=probability)
    ends = np.array([reverse_an_edge(as_parents(dags[start]), score, generator) for start in starts])
    found = number_of(members(ends, 4).swapaxes(-1, -2))
    assert p_value(found, number_of(dags), probability) > UNLIKELY
    assert (found != number_of(dags)[starts]).mean() > 0.1


def test_a_wrong_ratio_would_be_found() -> None:
    scores, generator = random_scores(3, 1.0, 4), np.random.default_rng(5)
    weights, score = partitions(brute_force(scores)), PartitionScore(scores)
    possible, probability = list(weights), np.array(list(weights.values()))
    starts = generator.choice(len(possible), size=8000, p=probability / probability.sum())
    wrong = np.array([possible.index(_always_taken(possible[start], score, generator)) for start in starts])
    assert p_value(wrong, np.arange(len(possible)), probability) < UNLIKELY


def _always_taken(layers: Layers, score: PartitionScore, generator: np.random.Generator) -> Layers:
    flat = PartitionScore(np.where(score.scores > -np.inf, 0.0, -np.inf))
    return split_or_join(swap_any(layers, flat, generator), flat, generator)


def test_descendants_of_a_node() -> None:
    #  0 -> 1 -> 3,  2 -> 3
    assert descendants((0, 0b1, 0, 0b110), 0) == 0b1011
    assert descendants((0, 0b1, 0, 0b110), 2) == 0b1100
