"""Means, paired differences and their intervals against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from causalpima.inference.ablation.table import (
    FEW_SEEDS,
    Difference,
    Spread,
    bootstrap_interval,
    mean_interval,
    paired_difference,
    spread,
    verdict,
)


def test_mean_and_standard_deviation_by_hand() -> None:
    found = spread({0: 1.0, 1: 2.0, 5: 6.0})
    assert found.n == 3
    assert found.mean == pytest.approx(3.0)
    assert found.sd == pytest.approx(np.sqrt((4 + 1 + 9) / 2))


def test_too_few_numbers_have_no_spread_and_no_interval() -> None:
    assert spread({}) == Spread(0, None, None)
    assert spread({0: 1.5}) == Spread(1, 1.5, None)
    assert paired_difference({}, {0: 1.0}) == Difference(0, None, None, None)
    assert paired_difference({0: 1.5}, {0: 1.0}) == Difference(1, 0.5, None, None)


def test_differences_are_paired_by_seed_and_not_by_place() -> None:
    found = paired_difference({2: 3.0, 0: 10.0, 7: 5.0}, {0: 8.0, 2: 2.0, 1: 100.0})
    assert found.n == 2
    assert found.mean == pytest.approx((1.0 + 2.0) / 2)


def test_pairing_takes_out_what_varies_between_seeds() -> None:
    baseline = {seed: float(100 * seed) for seed in range(8)}
    found = paired_difference({seed: value + 1 + 0.1 * (seed % 2) for seed, value in baseline.items()}, baseline)
    assert found.lower is not None
    assert found.upper is not None
    assert 1.0 <= found.lower < found.upper <= 1.1


def test_equal_differences_are_their_own_interval() -> None:
    assert mean_interval(np.full(6, 0.25)) == (0.25, 0.25)


def test_few_seeds_have_no_interval() -> None:
    assert mean_interval(np.arange(5.0)) == (None, None)
    assert None not in mean_interval(np.arange(6.0))


def accelerated_levels(values: np.ndarray, means: np.ndarray) -> tuple[float, float]:
    """Quantile levels of the interval by Efron (1987), from the exact distribution of resampled means."""
    mean = values.mean()
    share = (np.mean(means < mean) + np.mean(means <= mean)) / 2
    others = np.array([np.delete(values, i).mean() for i in range(len(values))])
    deviations = others.mean() - others
    acceleration = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    bias = norm.ppf(share)
    levels = [norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))) for z in (norm.ppf(0.025), norm.ppf(0.975))]
    return float(levels[0]), float(levels[1])


def test_the_interval_is_that_of_all_resamplings() -> None:
    values = np.array([-1.0, 0.2, 0.5, 1.7, 6.0])
    means = np.array([np.mean(sample) for sample in itertools.product(values, repeat=len(values))])
    found = bootstrap_interval(values)
    plain = np.quantile(means, [0.025, 0.975])
    for bound, level in zip(found, accelerated_levels(values, means), strict=True):
        # 9999 resamplings: four standard errors of the level.
        error = 4 * np.sqrt(level * (1 - level) / 9999)
        lowest, highest = np.quantile(means, [level - error, level + error])
        assert lowest <= bound <= highest
    assert not np.allclose(np.array(found, dtype=float), plain, atol=0.1)  # the skewness of these values matters


@pytest.mark.parametrize(
    ("lower", "upper", "better", "expected"),
    [
        (0.1, 0.2, 1, "better"),
        (0.1, 0.2, -1, "worse"),
        (-0.2, -0.1, 1, "worse"),
        (-0.2, -0.1, -1, "better"),
        (0.1, 0.2, 0, "different"),
        (-0.2, -0.1, 0, "different"),
        (-0.1, 0.2, 1, "no difference is shown"),
        (0.0, 0.2, -1, "no difference is shown"),
    ],
)
def test_verdicts(lower: float, upper: float, better: int, expected: str) -> None:
    assert verdict(Difference(FEW_SEEDS, 0.0, lower, upper), better) == expected
    assert verdict(Difference(FEW_SEEDS - 1, 0.0, lower, upper), better) == "too few seeds to tell"


def test_a_bound_nearer_to_zero_than_resampling_can_tell_is_zero() -> None:
    """Slid over zero in small steps: bounds are those of the bootstrap, but for the ones within 1 % of the width."""
    numbers = np.random.default_rng(0).normal(size=10)
    middle = bootstrap_interval(numbers)[1]
    told = []
    for shift in np.linspace(middle - 0.05, middle + 0.05, 21):
        lower, upper = bootstrap_interval(numbers - shift)
        found = paired_difference(dict(enumerate(numbers - shift)), dict.fromkeys(range(10), 0.0))
        is_near = abs(upper) < 0.01 * (upper - lower)
        assert (found.lower, found.upper) == (lower, 0.0 if is_near else upper)
        told.append(verdict(found, 1))
    assert told == sorted(told)  # no difference is shown, ..., worse
    assert {"no difference is shown", "worse"} == set(told)
    assert told.count("worse") < 10  # those above zero, at it and a little below it show none
