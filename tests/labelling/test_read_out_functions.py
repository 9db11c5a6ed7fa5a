"""Numbers read off images and curves, against shapes whose numbers are known."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.clusters.assumptions import curve_moments, image_moments, plain_values


def rectangle(left: int, width: int, top: int, height: int, colour: tuple[float, float]) -> np.ndarray:
    image = np.zeros((20, 40, 2))
    image[top : top + height, left : left + width] = colour
    return image


def test_moments_of_a_rectangle() -> None:
    found = image_moments(rectangle(10, 8, 4, 6, (3.0, 1.0))[None])[0]
    share, other, log_mass, x, spread_x, y, spread_y = found
    assert (share, other) == pytest.approx((0.75, 0.25), abs=1e-3)
    assert log_mass == pytest.approx(np.log(8 * 6 * 4), abs=1e-3)
    assert (x, y) == pytest.approx((14 / 40, 7 / 20), abs=1e-3)
    # A continuous box of width w has variance w²/12; pixels of width 1 take 1/12 away, which is added back.
    assert spread_x == pytest.approx(np.log(8 / 40 / 12**0.5), abs=1e-2)
    assert spread_y == pytest.approx(np.log(6 / 20 / 12**0.5), abs=1e-2)


def test_one_channel_has_no_share_and_darkness_is_finite() -> None:
    images = np.zeros((2, 5, 5, 1))
    images[1] = -1.0
    found = image_moments(images)
    assert found.shape == (2, 5)
    assert np.isfinite(found).all()


def test_moments_of_curves() -> None:
    positions = np.array([0.0, 1.0, 3.0, 4.0])
    line = 2.0 + 0.5 * positions
    peak = np.array([0.0, 0.0, 5.0, 0.0])
    found = curve_moments(np.stack([line, peak]), positions)
    assert found[0] == pytest.approx([line.mean(), 0.5, 2.0, 4.0])
    assert found[1] == pytest.approx([1.25, np.polyfit(positions, peak, 1)[0], 5.0, 3.0])


def test_plain_values() -> None:
    assert plain_values(np.arange(12).reshape(2, 3, 2)).tolist() == [list(range(6)), list(range(6, 12))]
