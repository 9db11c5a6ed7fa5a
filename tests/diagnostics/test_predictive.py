"""Predictive checks against models that are right, and that are wrong in a known way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalpima.inference.analyses.predictive import Predictive, check_modality, expected_coverage, predictive_lines

_D, _S, _E = 60, 120, 12
CELLS = np.arange(_S) % 2


def curves(seed: int, scale: float = 1.0, shift: float = 0.0, draws: int = _D) -> tuple[np.ndarray, np.ndarray]:
    """Replicates N(mean of the cell, 1), data N(mean of the cell + shift, scale²)."""
    rng = np.random.default_rng(seed)
    mean = np.where(CELLS, 3.0, -3.0)[:, None] + np.linspace(0, 1, _E)
    return mean + rng.normal(size=(draws, _S, _E)), mean + shift + scale * rng.normal(size=(_S, _E))


def check(replicated: np.ndarray, observed: np.ndarray, **changes: Any) -> Predictive:
    settings = {"kind": "curve", "likelihood": "normal", **changes}
    return check_modality(replicated, observed, CELLS, ("0", "1"), **settings)


def verdicts(found: Predictive) -> dict[str, str]:
    return {line.key: line.verdict for line in predictive_lines("x", found)}


def statistic(found: Predictive, name: str, cell: str | None = None) -> Any:
    return next(one for one in found.statistics if one.name == name and one.cell == cell)


def test_the_right_model_passes() -> None:
    found = check(*curves(0))
    assert set(verdicts(found).values()) == {"passes"}
    assert found.pit is not None
    # 1440 independent elements in 20 bins: five standard errors of a share.
    assert np.abs(found.pit - 0.05).max() < 5 * np.sqrt(0.05 * 0.95 / (_S * _E))
    for level, (share, expected, error) in found.coverage.items():
        assert expected == pytest.approx(level, abs=0.02)
        assert abs(share - expected) < 4 * error


@pytest.mark.parametrize(("scale", "narrow"), [(2.0, True), (0.5, False)])
def test_a_wrong_variance_fails(scale: float, narrow: bool) -> None:
    found = check(*curves(1, scale=scale))
    assert verdicts(found) == {"predictive_x": "fails", "coverage_x": "fails"}
    text = next(line for line in predictive_lines("x", found) if line.key == "coverage_x").advice
    assert ("too narrow" in text) == narrow
    # P(|N(0, scale²)| <= 1.645) for the ends of the 90 % interval.
    share = {2.0: 0.589, 0.5: 0.999}[scale]
    assert found.coverage[0.9][0] == pytest.approx(share, abs=0.03)


def test_a_level_that_is_off_fails_and_says_where() -> None:
    replicated, observed = curves(2)
    observed[CELLS == 1] += 1.0
    found = check(replicated, observed)
    assert verdicts(found)["predictive_x"] == "fails"
    # Of cluster 1 by one standard deviation of its values, which the slope makes a little larger than 1.
    assert statistic(found, "mean", "1").departure == pytest.approx(1.0 / observed[CELLS == 1].std(), abs=0.05)
    assert abs(statistic(found, "mean", "0").departure) < 0.1
    assert statistic(found, "mean", "1").p_value == 0.0


def test_noise_that_is_correlated_fails_by_its_roughness() -> None:
    replicated, observed = curves(3)
    smooth = np.random.default_rng(4).normal(size=(_S, 1)) + 0.0 * observed
    found = check(replicated, np.where(CELLS, 3.0, -3.0)[:, None] + np.linspace(0, 1, _E) + smooth)
    assert verdicts(found)["predictive_x"] == "fails"
    assert statistic(found, "roughness").departure < -0.5


def test_what_is_missing_counts_on_neither_side() -> None:
    replicated, observed = curves(5)
    gone = np.random.default_rng(6).random(observed.shape) < 0.3
    observed[gone], replicated[:, gone] = np.nan, 1e9
    found = check(replicated, observed)
    assert set(verdicts(found).values()) == {"passes"}
    assert all(np.isfinite(one.observed) for one in found.statistics)


def test_one_number_per_sample_is_checked_over_samples() -> None:
    rng = np.random.default_rng(7)
    right, wide = rng.normal(size=(_S, 1)), 2.0 * rng.normal(size=(_S, 1))
    replicated = rng.normal(size=(_D, _S, 1))
    assert verdicts(check(replicated, right, kind="vector"))["predictive_x"] == "passes"
    found = check(replicated, wide, kind="vector")
    assert {one.name for one in found.statistics} == {"mean", "squared distance from the mean"}
    assert verdicts(found)["predictive_x"] == "fails"


def test_categories_have_shares_and_no_intervals() -> None:
    rng = np.random.default_rng(8)
    replicated = (rng.random((_D, _S, 3)) < 0.3).astype(float)
    same, other = ((rng.random((_S, 3)) < share).astype(float) for share in (0.3, 0.7))
    right, wrong = (check(replicated, data, kind="vector", likelihood="categorical") for data in (same, other))
    assert right.pit is None
    assert verdicts(right) == {"predictive_x": "passes"}
    assert verdicts(wrong) == {"predictive_x": "fails"}
    assert statistic(wrong, "share of 1").departure == pytest.approx(0.4, abs=0.1)


def test_counts_with_many_ties_are_calibrated() -> None:
    rng = np.random.default_rng(9)
    found = check(rng.poisson(0.7, (_D, _S, _E)).astype(float), rng.poisson(0.7, (_S, _E)).astype(float))
    assert verdicts(found)["coverage_x"] == "passes"


def test_few_draws_are_expected_to_cover_what_their_ranks_allow() -> None:
    assert expected_coverage(0.9, 8) == 1.0
    assert expected_coverage(0.9, 18) == pytest.approx(17 / 19)
    assert expected_coverage(0.5, 3) == pytest.approx(0.5)
    assert verdicts(check(*curves(10, draws=8)))["coverage_x"] == "passes"


def test_images_are_rough_along_height_and_width() -> None:
    rng = np.random.default_rng(11)
    noise = rng.normal(size=(_S, 6, 5, 1))
    found = check(rng.normal(size=(_D, _S, 6, 5, 1)), noise, kind="image")
    expected = (np.diff(noise, axis=1) ** 2).mean((1, 2, 3)), (np.diff(noise, axis=2) ** 2).mean((1, 2, 3))
    assert statistic(found, "roughness").observed == pytest.approx(np.mean(expected))
    assert set(verdicts(found).values()) == {"passes"}


def numbers(seed: int, scale: float, n: int = 100, draws: int = 60, dependent: bool = False) -> Predictive:
    """Samples of one number, or of four that are all but the same: N(0, scale²), replicated as N(0, 1)."""
    rng = np.random.default_rng((41, seed))
    size = (n, 4 if dependent else 1)
    data = rng.normal(size=(n, 1)) + 0.1 * rng.normal(size=size)
    replicated = rng.normal(size=(draws, n, 1)) + 0.1 * rng.normal(size=(draws, *size))
    return check_modality(replicated, scale * data, np.zeros(n, dtype=int), ("0",), "vector", "normal")


@pytest.mark.parametrize("dependent", [False, True])
def test_a_right_model_passes_as_often_as_it_should(dependent: bool) -> None:
    passed = [verdicts(numbers(seed, 1.0, dependent=dependent))["coverage_x"] == "passes" for seed in range(80)]
    assert np.mean(passed) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 80)


# The 90 % interval of N(0, 1) holds 77 % of N(0, 1.37²).
@pytest.mark.parametrize("dependent", [False, True])
def test_77_of_90_percent_does_not_pass(dependent: bool) -> None:
    found = [numbers(seed, 1.645 / 1.2, dependent=dependent) for seed in range(40)]
    assert np.mean([one.coverage[0.9][0] for one in found]) == pytest.approx(0.77, abs=0.02)
    assert np.mean([verdicts(one)["coverage_x"] == "passes" for one in found]) <= 0.1


def test_the_error_of_coverage_is_that_of_a_right_model() -> None:
    for scale in (1.0, 2.0):
        expected, error = numbers(0, scale).coverage[0.9][1:]
        assert error == pytest.approx(np.sqrt(expected * (1 - expected) / 100), rel=0.01)
    assert numbers(0, 1.0, dependent=True).coverage[0.9][2] == pytest.approx(0.03, rel=0.2), "not of 400 elements"


def test_replicates_of_a_group_count_once() -> None:
    rng = np.random.default_rng(12)
    specimen = np.repeat(np.arange(25), 4)
    data = rng.normal(size=(25, 1))[specimen]
    replicated = rng.normal(size=(_D, 25, 1))[:, specimen]
    found = check_modality(replicated, data, np.zeros(100, dtype=int), ("0",), "vector", "normal", groups=specimen)
    assert found.coverage[0.9][2] == pytest.approx(0.3 / 5, rel=0.1)


def test_too_few_samples_pass_nothing() -> None:
    few = numbers(3, 1.0, n=20)
    assert verdicts(few)["coverage_x"] == "skipped"
    assert verdicts(numbers(3, 5.0, n=20))["coverage_x"] == "fails"


def test_outliers_do_not_excuse_themselves() -> None:
    """Half a per cent of wild values: their own spread would make a departure of 7 standard deviations look small."""
    rng = np.random.default_rng(13)
    data = rng.normal(size=(200, 1))
    data[0] = 40.0
    found = check_modality(rng.normal(size=(_D, 200, 1)), data, np.zeros(200, dtype=int), ("0",), "vector", "normal")
    off = statistic(found, "squared distance from the mean")
    assert off.departure > 3 * off.error
    assert verdicts(found)["predictive_x"] == "fails"
