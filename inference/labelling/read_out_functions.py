"""Numbers that are read off images and curves, without a network."""

from __future__ import annotations

import numpy as np

__all__ = ["curve_moments", "image_moments", "plain_values"]


def image_moments(images: np.ndarray) -> np.ndarray:
    """Share of every channel, log mass, centroid and log spread across and down of bright things on a dark ground.

    With one channel its share says nothing and is left out. Negative values count as dark.

    Args:
        images: `[n, height, width, channel]`.

    Returns:
        `[n, channel + 5]`; positions and spreads in units of the width and of the height.
    """
    bright = np.clip(np.asarray(images, dtype=np.float64), 0.0, None)
    # A thousandth of a pixel, so that a dark image has a mass.
    channel = bright.sum((1, 2)) + 1e-3
    mass = channel.sum(1, keepdims=True)
    shares = channel / mass if channel.shape[1] > 1 else np.empty((len(channel), 0))
    plane = bright.sum(3) + 1e-3 / bright[0, :, :, 0].size
    places = [_place(plane.sum(axis)) for axis in (1, 2)]
    columns = [np.log(mass), *(column[:, None] for place in places for column in place)]
    return np.concatenate([shares, *columns], axis=1)


def _place(profile: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centroid and log standard deviation of a profile `[n, position]`, in units of its length."""
    position = (np.arange(profile.shape[1]) + 0.5) / profile.shape[1]
    weight = profile / profile.sum(1, keepdims=True)
    centre = weight @ position
    spread = (weight * (position - centre[:, None]) ** 2).sum(1)
    # The variance of one pixel is the least that an image can show.
    return centre, 0.5 * np.log(spread + 1 / 12 / profile.shape[1] ** 2)


def curve_moments(curves: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Mean, slope of the least-squares line, height from lowest to highest, and position of the highest value.

    Args:
        curves: `[n, position]`, complete.
        positions: `[position]`.

    Returns:
        `[n, 4]`.
    """
    values = np.asarray(curves, dtype=np.float64)
    centred = positions - positions.mean()
    slope = values @ centred / (centred**2).sum()
    height = values.max(1) - values.min(1)
    return np.stack([values.mean(1), slope, height, positions[values.argmax(1)]], axis=1)


def plain_values(values: np.ndarray) -> np.ndarray:
    """Every element as a quantity of its own, `[n, ...]` -> `[n, F]`."""
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)
