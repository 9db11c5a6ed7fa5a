"""Values that a likelihood cannot have produced are refused in one line; gaps are not looked at."""

from __future__ import annotations

import re
from typing import get_args

import numpy as np
import pytest

from causalpima.inference.data.checks import LARGEST_COUNT, MAX_CATEGORIES, check_support
from causalpima.models.decoders.likelihoods import LikelihoodName

GOOD: dict[LikelihoodName, list[float]] = {
    "normal": [-1e30, 0.5, 3],
    "student_t": [-2.5, 1e6, 0],
    "bernoulli": [0, 1, 1],
    "categorical": [0, 4, 2],
    "poisson": [0, 7, LARGEST_COUNT],
    "negative_binomial": [0, 1, 12345],
}
BAD: dict[LikelihoodName, list[float]] = {
    "normal": [np.nan, np.inf, -np.inf],
    "student_t": [np.nan, np.inf],
    "bernoulli": [0.5, 2, -1, np.nan],
    "categorical": [0.5, -1, MAX_CATEGORIES, np.nan, np.inf],
    "poisson": [0.5, -1, LARGEST_COUNT + 2, np.nan, np.inf],
    "negative_binomial": [0.25, -3, np.nan, np.inf],
}
bad_values = pytest.mark.parametrize(("likelihood", "bad"), [(name, x) for name in BAD for x in BAD[name]])


def column(values: list[float]) -> np.ndarray:
    return np.array(values, dtype=np.float32).reshape(-1, 1)


def test_every_likelihood_is_checked() -> None:
    assert set(GOOD) == set(BAD) == set(get_args(LikelihoodName))


@pytest.mark.parametrize("likelihood", list(GOOD))
def test_good_values_pass_and_categories_are_counted(likelihood: LikelihoodName) -> None:
    assert check_support("x", likelihood, column(GOOD[likelihood])) == (5 if likelihood == "categorical" else 1)


@bad_values
def test_the_first_bad_sample_is_named(likelihood: LikelihoodName, bad: float) -> None:
    values = column([0, 1, 0, bad, bad])
    message = f"for likelihood {likelihood}, got {bad:g} in sample 103; choose another likelihood"
    with pytest.raises(ValueError, match=f"^counts: expected .* {re.escape(message)}$"):
        check_support("counts", likelihood, values, first=100)


@bad_values
@pytest.mark.parametrize("per_element", [True, False])
def test_what_was_not_measured_may_be_anything(likelihood: LikelihoodName, bad: float, per_element: bool) -> None:
    values = np.repeat(column([0, 1, bad, 1]), 3, axis=1)
    observed = np.array([True, True, False, True])
    if per_element:
        observed = np.repeat(observed[:, None], 3, axis=1)
    assert check_support("x", likelihood, values, observed) == (2 if likelihood == "categorical" else 1)
    with pytest.raises(ValueError, match="in sample 2"):
        check_support("x", likelihood, values, np.ones_like(observed))


def test_the_line_for_counts() -> None:
    with pytest.raises(ValueError, match=r"^counts: expected whole numbers >= 0 and <= 16777216 for likelihood pois"):
        check_support("counts", "poisson", column([1, 2, 3, 0.5]))


def test_a_category_alone_is_one_of_two_and_none_at_all_is_none() -> None:
    assert check_support("x", "categorical", column([0, 0])) == 2
    assert check_support("x", "categorical", column([7, 7]), np.zeros(2, dtype=bool)) == 1
