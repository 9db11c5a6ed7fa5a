"""A pendulum, a light and the shadow on the ground: geometry and drawing."""

from __future__ import annotations

import numpy as np

__all__ = ["draw_scenes", "shadow"]

_SIDE = 32
_LEFT, _BOTTOM, _WIDTH = -1.0, -0.25, 2.8
_PIVOT = 1.4
_ROD = 1.0
_LIGHT_DISTANCE = 0.7
# Half-widths of what is drawn, and colours.
_ROD_SIZE, _BOB_SIZE, _LIGHT_SIZE, _SHADOW_SIZE = 0.05, 0.2, 0.2, 0.1
_GREY, _YELLOW, _BLUE = (0.8, 0.8, 0.8), (1.0, 0.9, 0.2), (0.2, 0.4, 1.0)


def shadow(angle: np.ndarray, light: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Length and position (middle) of the shadow that a rod throws on the ground, in lengths of the rod.

    The rod, of length 1, hangs from a pivot at height H = 1.4 above the origin and is turned by the angle a from the
    vertical, so that its end is at `(sin a, H - cos a)`. The light comes from the upper left, in parallel rays at the
    angle b from the vertical: along a ray, x grows by tan b for every unit of height that is lost, and what is at
    `(x, y)` throws its shadow at x + y tan b. The two ends of the rod throw theirs at

    $$x_1 = H \tan b, \qquad x_2 = \sin a + (H - \cos a) \tan b = x_1 + \frac{\sin(a - b)}{\cos b},$$

    so that the shadow is |sin(a - b)| / cos b long (none where the rod points at the light) and its middle is at
    (x_1 + x_2) / 2.

    Args:
        angle: Of the pendulum, degrees, to the right is positive.
        light: Of the rays, degrees from the vertical, below 90.
    """
    a, b = np.radians(angle), np.radians(light)
    of_pivot, extent = _PIVOT * np.tan(b), _ROD * np.sin(a - b) / np.cos(b)
    return np.abs(extent), of_pivot + extent / 2


def draw_scenes(angle: np.ndarray, light: np.ndarray, length: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Draw pendulum (grey), light (yellow, on the ray through the pivot) and shadow (blue), anti-aliased on black.

    Everything is a segment with round ends; a pixel whose centre is at distance d from it, in pixels, is covered by
    `clip(half-width - d + 0.5, 0, 1)`. The shadow is drawn as told, not as `shadow` has it.

    Args:
        angle: Of the pendulum, degrees, `[sample]`.
        light: Of the rays, degrees from the vertical, `[sample]`.
        length: Of the shadow, `[sample]`; drawn as 0 where it is negative.
        position: Of its middle, `[sample]`.

    Returns:
        Images, float32 `[sample, 32, 32, 3]` in [0, 1], row 0 on top; what leaves the frame is cut off.
    """
    a, b = np.radians(angle), np.radians(light)
    pivot = _points(np.zeros_like(a), np.full_like(a, _PIVOT))
    bob = pivot + _ROD * _points(np.sin(a), -np.cos(a))
    source = pivot + _LIGHT_DISTANCE * _points(-np.sin(b), np.cos(b))
    half = np.maximum(length, 0) / 2
    ends = _points(position - half, np.zeros_like(a)), _points(position + half, np.zeros_like(a))
    pendulum = np.maximum(_covered(pivot, bob, _ROD_SIZE), _covered(bob, bob, _BOB_SIZE))
    drawn = (pendulum, _GREY), (_covered(source, source, _LIGHT_SIZE), _YELLOW), (_covered(*ends, _SHADOW_SIZE), _BLUE)
    image: np.ndarray = np.zeros((len(a), _SIDE, _SIDE, 3), dtype=np.float32)
    for part, colour in drawn:
        np.maximum(image, part[..., None] * np.array(colour, dtype=np.float32), out=image)
    return image


def _points(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([x, y], axis=-1)


def _covered(start: np.ndarray, end: np.ndarray, half_width: float) -> np.ndarray:
    """Share of every pixel that a segment with round ends covers, float32 `[sample, row, column]`."""
    scale = np.float32(_SIDE / _WIDTH)
    distance = _distance(start.astype(np.float32), end.astype(np.float32))
    return np.clip(scale * (np.float32(half_width) - distance) + np.float32(0.5), 0, 1)


def _distance(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """From the centre of every pixel to the segment of every sample, `[sample, row, column]`."""
    steps = (np.arange(_SIDE, dtype=np.float32) + np.float32(0.5)) * np.float32(_WIDTH / _SIDE)
    x = np.float32(_LEFT) + steps - start[:, None, None, 0]
    y = np.float32(_BOTTOM) + steps[::-1, None] - start[:, None, None, 1]
    along_x, along_y = np.moveaxis(end - start, 1, 0)[:, :, None, None]
    squared = np.maximum(along_x**2 + along_y**2, np.float32(1e-12))
    share = np.clip((x * along_x + y * along_y) / squared, 0, 1)
    distance: np.ndarray = np.hypot(x - share * along_x, y - share * along_y)
    return distance
