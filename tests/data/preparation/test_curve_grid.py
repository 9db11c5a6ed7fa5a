from __future__ import annotations

import numpy as np
from lab import refused

from causalpima.inference.data.preparation.curves import MOST_POINTS, common_grid, on_grid


def test_from_the_smallest_to_the_largest_position() -> None:
    grid = common_grid([np.array([0.0, 1.0, 4.0]), np.array([-1.0, 2.0, 3.0])], 6)
    np.testing.assert_allclose(grid, [-1, 0, 1, 2, 3, 4], atol=1e-15)
    assert (grid[0], grid[-1]) == (-1.0, 4.0)


def test_the_number_of_points_is_the_median_of_the_curves() -> None:
    curves = [np.linspace(0, 1, n) for n in (4, 9, 30)]
    assert len(common_grid(curves, None)) == 9
    assert len(common_grid([np.linspace(0, 1, n) for n in (1000, 2000)], None)) == MOST_POINTS


def test_equal_positions_are_kept_unless_asked_otherwise() -> None:
    x = np.array([0.0, 1.0, 10.0])
    np.testing.assert_array_equal(common_grid([x, x.copy()], None), x)
    np.testing.assert_array_equal(common_grid([x, x.copy()], 3), [0, 5, 10])


def test_values_between_points_by_the_two_point_formula() -> None:
    rng = np.random.default_rng(0)
    x, grid = np.cumsum(rng.uniform(0.1, 1, 12)), np.linspace(-1, 9, 57)
    y = rng.normal(size=12)
    values = on_grid(grid, x, y)
    for position, value in zip(grid, values, strict=True):
        right = np.searchsorted(x, position)
        if position < x[0] or position > x[-1]:
            assert np.isnan(value)
        else:
            a, b = max(right - 1, 0), right
            share = 0.0 if a == b else (position - x[a]) / (x[b] - x[a])
            np.testing.assert_allclose(value, (1 - share) * y[a] + share * y[b], rtol=1e-12)


def test_the_first_and_the_last_point_are_measured() -> None:
    np.testing.assert_array_equal(
        on_grid(np.arange(5.0), np.array([1.0, 3.0]), np.array([2.0, 6.0])), [np.nan, 2, 4, 6, np.nan]
    )


def test_a_curve_between_two_points_of_the_grid() -> None:
    why = refused(lambda: on_grid(np.arange(5.0), np.array([1.2, 1.8]), np.array([2.0, 6.0])))
    assert why == "it reaches from 1.2 to 1.8, between two points of the common grid"
