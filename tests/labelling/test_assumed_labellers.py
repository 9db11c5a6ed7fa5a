"""Clusters named by additive effects or independence: what is planted is found, and what is wrong is as sure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from simulated_environments import TREES, joint

from causalpima.inference.clusters.assumptions import (
    additive_labellings,
    chance_limit,
    cluster_means,
    label_by_independence,
    label_by_read_outs,
    residuals,
    total_correlation,
)
from causalpima.inference.clusters.labels import (
    Clusters,
    Labelling,
    as_tables,
    enumerate_labellings,
    node_outcomes,
    partition_codes,
)
from causalpima.inference.findings.meaning import search_sentence

NODES = {"h": 2, "r": 2, "s": 2}
OUTCOMES = (2, 2, 2)
CODES = np.array(np.unravel_index(np.arange(8), OUTCOMES))

Effects = Callable[[np.ndarray], np.ndarray]


def additive(codes: np.ndarray) -> np.ndarray:
    h, r, s = codes
    return np.stack([4 + 2 * h + r, -6 + 6 * r + 3 * s, 1.0 * h], axis=-1)


def reversed_effect(codes: np.ndarray) -> np.ndarray:
    """r turns the effect of s around."""
    h, r, s = codes
    return np.stack([4 + 2 * h + r, -6 + 6 * r + 3 * np.where(r, 1 - s, s), 1.0 * h], axis=-1)


def drawn(
    effects: Effects, table: np.ndarray, n: int = 4000, noise: float = 0.3
) -> tuple[Clusters, np.ndarray, np.ndarray]:
    """Clusters numbered at random, read-outs, and the labelling behind them."""
    rng = np.random.default_rng(0)
    cell, number = rng.choice(8, n, p=table.ravel()), rng.permutation(8)
    values = effects(CODES[:, cell]) + noise * rng.standard_normal((n, 3))
    return Clusters(np.eye(8)[number[cell]], values[:, :2]), values, np.argsort(number)


def right_nodes(found: Labelling, truth: np.ndarray) -> int:
    """Nodes with the true clusters behind them, whatever they and their outcomes are called."""
    mine, true = (partition_codes(node_outcomes(entry, OUTCOMES)) for entry in (found.permutation, truth))
    return sum(any(np.array_equal(own, other) for other in true) for own in mine)


def by_read_outs(effects: Effects) -> tuple[Labelling, np.ndarray]:
    clusters, values, truth = drawn(effects, joint(TREES["collider"]))
    return label_by_read_outs(clusters, NODES, values, np.ones(len(values), dtype=bool), ["image"]), truth


def test_residuals_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    means, outcomes = rng.standard_normal((6, 4)), (2, 3)
    labellings = enumerate_labellings(outcomes)
    for labelling, found in zip(labellings, residuals(means, labellings, outcomes), strict=True):
        first, second = np.unravel_index(labelling, outcomes)
        design = np.column_stack([np.ones(6), first, second == 1, second == 2])
        left = means - design @ np.linalg.lstsq(design, means, rcond=None)[0]
        assert found == pytest.approx((left**2).sum() / ((means - means.mean(0)) ** 2).sum())


def test_additive_effects_name_the_nodes() -> None:
    found, truth = by_read_outs(additive)
    assert right_nodes(found, truth) == 3
    assert len(found.named_nodes) == 3
    assert found.details["residual"] < 5 * found.details["noise"] < found.details["runner_up_residual"]


def test_reversed_effects_look_exactly_as_sure_and_are_wrong() -> None:
    """The negative control: nothing in the result tells that the assumption failed."""
    every = enumerate_labellings(OUTCOMES)
    right, mistaken = (np.sort(residuals(effects(CODES), every, OUTCOMES)) for effects in (additive, reversed_effect))
    assert np.allclose(right, mistaken)
    wrong, truth = by_read_outs(reversed_effect)
    assert right_nodes(wrong, truth) == 2
    assert len(wrong.named_nodes) == 3
    assert wrong.details["residual"] < 5 * wrong.details["noise"] < wrong.details["runner_up_residual"]


def test_noise_is_what_chance_leaves_under_the_right_labelling() -> None:
    rng, table = np.random.default_rng(0), joint(TREES["chain"]).ravel()
    left, expected = [], []
    for _ in range(300):
        cell = rng.choice(8, 400, p=table)
        values = additive(CODES[:, cell]) + 2.0 * rng.standard_normal((400, 3))
        found = additive_labellings(cluster_means(np.eye(8)[cell], values), OUTCOMES, np.arange(8)[None])
        left.append(found.residual[0])
        expected.append(found.noise)
    assert np.mean(left) == pytest.approx(np.mean(expected), abs=4 * np.std(left) / 300**0.5 + 0.05 * np.mean(left))


def test_weak_effects_leave_labellings() -> None:
    clusters, values, _ = drawn(additive, joint(TREES["chain"]), n=200, noise=20.0)
    found = label_by_read_outs(clusters, NODES, values, np.ones(200, dtype=bool), ["image"])
    assert found.details["n_remaining"] > 1
    assert len(found.named_nodes) < 3


def test_samples_without_read_outs_are_left_out() -> None:
    clusters, values, truth = drawn(additive, joint(TREES["fork"]))
    present = np.arange(len(values)) % 2 == 0
    found = label_by_read_outs(clusters, NODES, values[present], present, ["image"])
    assert right_nodes(found, truth) == 3


def test_constant_read_outs_are_refused() -> None:
    clusters, values, _ = drawn(additive, joint(TREES["fork"]), n=100)
    with pytest.raises(ValueError, match=r"^read_outs: expected quantities that differ"):
        label_by_read_outs(clusters, NODES, 0 * values, np.ones(100, dtype=bool), ["image"])


def test_total_correlation_is_the_likelihood_ratio() -> None:
    mass = np.random.default_rng(0).integers(1, 60, 6).astype(float)
    labellings = enumerate_labellings((2, 3))
    for labelling, found in zip(labellings, total_correlation(mass, labellings, (2, 3)), strict=True):
        table = as_tables(mass, labelling[None], (2, 3))[0]
        independent = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum() ** 2
        by_hand = sum(
            table[cell] * np.log(table[cell] / table.sum() / independent[cell]) for cell in product(range(2), range(3))
        )
        assert found == pytest.approx(by_hand)


def test_chance_limit_is_exceeded_once_in_a_thousand() -> None:
    rng = np.random.default_rng(0)
    table = np.einsum("i,j,k->ijk", [0.5, 0.5], [0.6, 0.4], [0.7, 0.3]).ravel()
    counts = rng.multinomial(4000, table, 4000).astype(float)
    values = np.array([total_correlation(row, np.arange(8)[None], OUTCOMES)[0] for row in counts])
    assert (values > chance_limit(OUTCOMES)).mean() < 0.001 + 4 * (0.001 / 4000) ** 0.5


def test_independent_nodes_are_named() -> None:
    table = np.einsum("i,j,k->ijk", [0.5, 0.5], [0.6, 0.4], [0.7, 0.3])
    clusters, _, truth = drawn(additive, table)
    found = label_by_independence(clusters, NODES)
    assert right_nodes(found, truth) == 3
    assert found.details["total_correlation"] <= found.details["chance_limit"]


def test_dependence_under_every_labelling_contradicts_the_declaration() -> None:
    clusters, _, _ = drawn(additive, joint(TREES["collider"]), n=40_000)
    found = label_by_independence(clusters, NODES)
    assert found.details["total_correlation"] > found.details["chance_limit"]
    assert not found.named_nodes


def test_effects_that_add_under_no_labelling_name_nothing() -> None:
    effects = np.random.default_rng(1).standard_normal((8, 3))
    clusters, values, _ = drawn(
        lambda codes: effects[codes[0] * 4 + codes[1] * 2 + codes[2]], joint(TREES["fork"]), noise=0.01
    )
    found = label_by_read_outs(clusters, NODES, values, np.ones(len(values), dtype=bool), ["image"])
    assert found.details["residual"] > max(100 * found.details["noise"], 0.05)
    assert not found.named_nodes
    assert "do not add up" in search_sentence({"labelling": found.to_plain()})
