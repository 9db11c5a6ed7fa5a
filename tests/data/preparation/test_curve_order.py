from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from lab import refused

from causalpima.inference.data.preparation.curves import JITTER, in_order
from causalpima.inference.data.preparation.options import CurveOrder

ORDERS = get_args(CurveOrder)
RISING = np.linspace(0.0, 10.0, 11)


def test_increasing_positions_stay() -> None:
    x, y = in_order(RISING, RISING**2, "refuse")
    np.testing.assert_array_equal([x, y], [RISING, RISING**2])


@pytest.mark.parametrize("order", ORDERS)
def test_a_curve_that_runs_down_is_turned_round(order: CurveOrder) -> None:
    x, y = in_order(RISING[::-1], RISING[::-1] ** 2, order)
    np.testing.assert_array_equal([x, y], [RISING, RISING**2])


def test_equal_positions_are_averaged() -> None:
    x, y = in_order(np.array([0.0, 1.0, 1.0, 1.0, 2.0]), np.array([5.0, 1.0, 2.0, 6.0, 7.0]), "refuse")
    np.testing.assert_array_equal([x, y], [[0, 1, 2], [5, 3, 7]])


def test_noise_in_the_position_is_sorted() -> None:
    x = np.array([0.0, 5.0, 5.0 - 9.9 * JITTER, 10.0])
    position, value = in_order(x, np.arange(4.0), "refuse")
    np.testing.assert_array_equal(position, np.sort(x))
    np.testing.assert_array_equal(value, [0, 2, 1, 3])


def test_many_small_steps_back_are_no_noise() -> None:
    x = np.concatenate([np.linspace(0, 10, 101), np.linspace(9.99, 9.0, 100)])
    assert refused(lambda: in_order(x, x, "refuse")) == "the position goes back by 10% of its range; see --curve_order"


def test_unloading_is_refused_cut_or_sorted() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 2.0, 1.0])
    y = np.array([0.0, 4.0, 5.0, 6.0, 3.0, 0.0])
    assert refused(lambda: in_order(x, y, "refuse")).startswith("the position goes back by 67% of its range")
    np.testing.assert_array_equal(in_order(x, y, "cut"), [[0, 1, 2, 3], [0, 4, 5, 6]])
    np.testing.assert_array_equal(in_order(x, y, "sort"), [[0, 1, 2, 3], [0, 2, 4, 6]])


def test_a_cut_curve_may_not_go_back_before_its_end() -> None:
    x = np.array([0.0, 2.0, 1.0, 3.0, 0.0])
    assert refused(lambda: in_order(x, x, "cut")).startswith("the position goes back by 33%")


@pytest.mark.parametrize("order", ORDERS)
def test_one_position_only(order: CurveOrder) -> None:
    assert refused(lambda: in_order(np.ones(3), np.ones(3), order)) == "the position is the same everywhere"
