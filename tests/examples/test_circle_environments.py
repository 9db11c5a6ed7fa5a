"""Circles under interventions: which tables change, which stay, and what the samples say of it."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import chi2

from causalpima.examples.circle_environments import Kind, circles_environments, environment_network
from causalpima.examples.circle_truths import LEVELS, Truth, circle_network, true_adjacency, true_joint
from causalpima.examples.circles import bayes_ceiling, circles
from causalpima.inference.data.validation import validate

TRUTHS: tuple[Truth, ...] = get_args(Truth)


def test_data_keep_the_contract() -> None:
    data = circles_environments(50, 30, seed=3, truth="chain")
    validate(data)
    assert data.environment is not None
    np.testing.assert_array_equal(np.bincount(data.environment), [50, 30, 30, 30])
    assert data.environment_names == ("observational", "do(hue)", "do(radius)", "do(shift)")
    assert data.environment_targets == ((), ("hue",), ("radius",), ("shift",))
    assert data.name == "circles_environments_chain"
    np.testing.assert_array_equal(data.true_joint, true_joint("chain"))
    np.testing.assert_array_equal(data.true_adjacency, true_adjacency("chain"))


def test_the_observational_samples_are_the_circles() -> None:
    pooled, alone = circles_environments(40, 10, seed=5, truth="fork"), circles(40, seed=5, truth="fork")
    np.testing.assert_array_equal(pooled.modalities["image"][:40], alone.modalities["image"])
    assert not np.array_equal(pooled.modalities["image"][40:50], alone.modalities["image"][:10])


def test_samples_do_not_depend_on_the_numbers_of_others() -> None:
    few, many = circles_environments(20, 10, seed=1), circles_environments(60, 25, seed=1)
    for code in range(4):
        n = 20 if code == 0 else 10
        rows, more = (np.flatnonzero(data.environment == code)[:n] for data in (few, many))
        np.testing.assert_array_equal(few.modalities["image"][rows], many.modalities["image"][more])


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("target", LEVELS)
def test_do_cuts_the_target_from_its_parents_and_keeps_the_rest(truth: Truth, target: str) -> None:
    before, after = circle_network(truth), environment_network(circle_network(truth), target, "do")
    axis = list(LEVELS).index(target)
    expected = before.joint / before.conditional(target) * np.array([0.2, 0.8]).reshape(np.roll([2, 1, 1], axis))
    np.testing.assert_allclose(after.joint, expected, rtol=1e-12)
    assert not after.adjacency[:, axis].any()
    np.testing.assert_array_equal(np.delete(after.adjacency, axis, 1), np.delete(before.adjacency, axis, 1))


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("target", LEVELS)
def test_every_do_moves_the_target(truth: Truth, rare: bool, target: str) -> None:
    axis = list(LEVELS).index(target)
    others = tuple({0, 1, 2} - {axis})
    assert abs(true_joint(truth, rare).sum(others)[1] - 0.8) > 0.19


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("target", LEVELS)
def test_soft_raises_the_log_odds_by_the_same_for_all_parents(truth: Truth, target: str) -> None:
    before, after = circle_network(truth), environment_network(circle_network(truth), target, "soft")
    rise = logit(after.tables[target][..., 1]) - logit(before.tables[target][..., 1])
    np.testing.assert_allclose(rise, 1.5)
    np.testing.assert_array_equal(after.adjacency, before.adjacency)
    for other in set(LEVELS) - {target}:
        np.testing.assert_array_equal(after.tables[other], before.tables[other])


@pytest.mark.parametrize("kind", ["do", "soft"])
def test_cells_are_as_frequent_as_their_environment_says(kind: Kind) -> None:
    data = circles_environments(2000, 2000, seed=11, truth="collider", kind=kind)
    observational = circle_network("collider")
    networks = [observational, *(environment_network(observational, target, kind) for target in LEVELS)]
    assert data.environment is not None
    for code, network in enumerate(networks):
        counts = np.zeros((2, 2, 2))
        np.add.at(counts, tuple(codes[data.environment == code] for codes in data.factors.values()), 1)
        assert ((counts - 2000 * network.joint) ** 2 / (2000 * network.joint)).sum() < chi2.ppf(1 - 1e-4, df=7)


def test_ceiling_is_the_mean_of_those_of_the_environments() -> None:
    data = circles_environments(700, 400, seed=2, truth="chain", targets=("radius",))
    networks = [circle_network("chain"), environment_network(circle_network("chain"), "radius", "do")]
    assert data.environment is not None
    parts = []
    for code, network in enumerate(networks):
        rows = data.environment == code
        factors = {name: codes[rows] for name, codes in data.factors.items()}
        radius, shift = (data.measurements[name][rows] for name in ("radius", "shift"))
        parts.append(bayes_ceiling(factors, radius, shift, joint=network.joint))
    assert data.bayes_ceiling == pytest.approx(np.average(parts, weights=[700, 400]), abs=1e-12)
    assert parts[0] != parts[1]


@pytest.mark.parametrize(("given", "expected"), [(None, 150), (40, 40)])
def test_environments_have_half_as_many_samples_unless_told_otherwise(given: int | None, expected: int) -> None:
    codes = circles_environments(300, given).environment
    assert codes is not None
    assert np.bincount(codes).tolist() == [300, expected, expected, expected]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: expected at least 1, got 0"),
        ({"n_per_environment": 0}, "n_per_environment: expected at least 1, got 0"),
        ({"kind": "hard"}, "kind: expected one of do, soft, got 'hard'"),
        ({"targets": ("colour",)}, "targets: expected one of hue, radius, shift, got 'colour'"),
        ({"targets": ("hue", "hue")}, "targets: expected every factor once, got hue, hue"),
        ({"truth": "tree"}, "truth: expected one of independent, chain"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        circles_environments(**arguments)  # type: ignore[arg-type]
