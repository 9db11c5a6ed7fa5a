"""Pictures of printed lattices: the material averaged along the depth of one period, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter

__all__ = ["CELLS", "MAX_MISSING", "Views", "draw_views", "gyroid_occupancy", "octet_occupancy", "render_lattices"]

CELLS = 2
"""Unit cells along each side of a picture."""

MAX_MISSING = 6
"""Most missing struts in a picture."""

_CHUNK = 128
_OVERSAMPLING = 2
_BLUR = 0.02  # standard deviation of the optics as a share of the side
_JITTER = 0.04  # largest offset of the crop, in unit cells
_GAIN = 0.08  # relative spread of the lamp
_NOISE = 0.03  # of a pixel in [0, 1]
_STRUT_WIDTH = 0.09  # half width of the gap that a missing strut leaves, in unit cells
_STRUT_DEPTH = 0.8  # share of the material there that is gone
_DIRECTIONS = np.array([[0.5, 0.0], [0.0, 0.5], [0.5, 0.5], [0.5, -0.5]])
_LEVELS = np.linspace(-1.5, 1.5, 301)


@dataclass(frozen=True)
class Views:
    """What differs between pictures of equal lattices.

    Attributes:
        offset: Offset of the crop in unit cells, vertical and horizontal, `[sample, 2]`.
        gain: Brightness of the lamp, `[sample]`.
        gaps: Start of every possible gap in unit cells, `[sample, gap, 2]`.
        directions: From the start of a gap to its end, `[sample, gap, 2]`.
    """

    offset: np.ndarray
    gain: np.ndarray
    gaps: np.ndarray
    directions: np.ndarray


def draw_views(n_samples: int, generator: np.random.Generator) -> Views:
    """Random views; the first ones do not depend on their number."""
    offset, gain, place, direction = generator.spawn(4)
    nodes = place.integers(0, 2 * CELLS + 1, size=(n_samples, MAX_MISSING, 2))
    return Views(
        offset=_JITTER * (2.0 * offset.random((n_samples, 2)) - 1.0),
        gain=1.0 + _GAIN * gain.standard_normal(n_samples),
        gaps=0.5 * nodes,
        directions=_DIRECTIONS[direction.integers(0, len(_DIRECTIONS), size=(n_samples, MAX_MISSING))],
    )


def gyroid_occupancy(vertical: np.ndarray, horizontal: np.ndarray, density: np.ndarray) -> np.ndarray:
    r"""Share of the depth that a network gyroid fills: where sin x cos y + sin y cos z + sin z cos x ≥ t.

    With a = sin x cos y and R² = sin² y + cos² x the left side is a + R sin(z + φ), so that over a period of z

    $$\text{share} = \tfrac1\pi \arccos\bigl(\operatorname{clip}((t - a)/R, -1, 1)\bigr).$$

    Args:
        vertical: x in unit cells, broadcasts with `horizontal`.
        horizontal: y in unit cells.
        density: Relative density in (0, 1), broadcasts with both; it determines t.

    Returns:
        Occupancy in [0, 1].
    """
    level = np.interp(density, _LEVEL_DENSITIES[::-1], _LEVELS[::-1])
    return _gyroid_share(2 * np.pi * vertical, 2 * np.pi * horizontal, level)


def _gyroid_share(x: np.ndarray, y: np.ndarray, level: np.ndarray) -> np.ndarray:
    amplitude = np.sqrt(np.sin(y) ** 2 + np.cos(x) ** 2)
    ratio = (level - np.sin(x) * np.cos(y)) / np.maximum(amplitude, 1e-6)
    return np.arccos(np.clip(ratio, -1.0, 1.0)) / np.pi


def _densities_of(levels: np.ndarray) -> np.ndarray:
    position = (np.arange(48) + 0.5) / 48 * 2 * np.pi
    return _gyroid_share(position[:, None], position, levels[:, None, None]).mean(axis=(1, 2))


_LEVEL_DENSITIES = _densities_of(_LEVELS)


def octet_occupancy(vertical: np.ndarray, horizontal: np.ndarray, density: np.ndarray) -> np.ndarray:
    r"""Share of the depth that the struts of an octet truss fill, seen along an edge of its cubic cell.

    Struts are cylinders of radius r (cell side 1) along the face diagonals. Two per period project onto each of the
    lines x = k/2 and y = k/2, inclined by 45°, and one onto each diagonal x ± y = k/2, lying flat. A ray at distance
    d from a line stays $2\sqrt{r^2 - d^2}/\sin\theta$ in such a strut. Integrated, the density is
    $\rho = 12\sqrt2\,\pi r^2$ = 6√2 π (r/l)² with the strut length l = 1/√2 (Deshpande, Fleck and Ashby 2001, without
    the material that struts share at nodes). Struts that cross are added up, at most to 1.

    Args:
        vertical: x in unit cells, broadcasts with `horizontal`.
        horizontal: y in unit cells.
        density: Relative density in (0, 1), broadcasts with both.

    Returns:
        Occupancy in [0, 1].
    """
    squared_radius = density / (12 * np.sqrt(2) * np.pi)
    inclined = _chord(vertical, 0.5, squared_radius) + _chord(horizontal, 0.5, squared_radius)
    diagonal, width = (vertical - horizontal) / np.sqrt(2), 0.5 / np.sqrt(2)
    flat = _chord(diagonal, width, squared_radius)
    flat += _chord((vertical + horizontal) / np.sqrt(2), width, squared_radius)
    return np.minimum(2 * np.sqrt(2) * inclined + flat, 1.0)


def _chord(position: np.ndarray, spacing: float, squared_radius: np.ndarray) -> np.ndarray:
    """Chord through a cylinder around the nearest of equally spaced lines, across the line."""
    distance = position - spacing * np.round(position / spacing)
    return 2.0 * np.sqrt(np.maximum(squared_radius - distance**2, 0.0))


_OCCUPANCY = (gyroid_occupancy, octet_occupancy)


def render_lattices(
    octet: np.ndarray,
    density: np.ndarray,
    missing: np.ndarray,
    views: Views,
    side: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """Grey pictures: 0.1 + 0.8 × occupancy, without the missing struts, blurred, under a lamp, with noise.

    Args:
        octet: 0 = gyroid, 1 = octet, `[sample]`.
        density: Relative density, `[sample]`.
        missing: Number of missing struts, at most `MAX_MISSING`, `[sample]`.
        views: Of each picture.
        side: Pixels along a side.
        generator: Of the noise.

    Returns:
        float32 `[sample, side, side, 1]` in [0, 1].
    """
    images = np.empty((len(octet), side, side), dtype=np.float32)
    for start in range(0, len(octet), _CHUNK):
        rows = slice(start, start + _CHUNK)
        chunk = Views(**{name: values[rows] for name, values in vars(views).items()})
        occupancy = _occupancy(octet[rows], density[rows], chunk.offset, side)
        occupancy *= _remaining(missing[rows], chunk, side)
        blurred = gaussian_filter(occupancy, (0.0, _BLUR * side, _BLUR * side), mode="nearest")
        images[rows] = chunk.gain[:, None, None] * (0.1 + 0.8 * blurred)
    images += _NOISE * generator.standard_normal(images.shape, dtype=np.float32)
    return np.clip(images, 0.0, 1.0)[..., None]


def _positions(side: int) -> np.ndarray:
    return (np.arange(side) + 0.5) * CELLS / side


def _occupancy(octet: np.ndarray, density: np.ndarray, offset: np.ndarray, side: int) -> np.ndarray:
    position = _positions(side * _OVERSAMPLING)
    vertical = (position + offset[:, :1])[:, :, None]
    horizontal = (position + offset[:, 1:])[:, None, :]
    fine = np.empty((len(octet), len(position), len(position)))
    for kind, occupancy in enumerate(_OCCUPANCY):
        of_kind = octet == kind
        fine[of_kind] = occupancy(vertical[of_kind], horizontal[of_kind], density[of_kind, None, None])
    return fine.reshape(len(octet), side, _OVERSAMPLING, side, _OVERSAMPLING).mean(axis=(2, 4))


def _remaining(missing: np.ndarray, views: Views, side: int) -> np.ndarray:
    """Share of the material that is left where struts are missing, `[sample, side, side]`."""
    remaining = np.ones((len(missing), side, side))
    for gap in range(MAX_MISSING):
        hit = missing > gap
        distance = _distance(views.offset[hit], views.gaps[hit, gap], views.directions[hit, gap], side)
        inside = np.clip((_STRUT_WIDTH - distance) * side / CELLS + 0.5, 0.0, 1.0)
        remaining[hit] *= 1.0 - _STRUT_DEPTH * inside
    return remaining


def _distance(offset: np.ndarray, start: np.ndarray, direction: np.ndarray, side: int) -> np.ndarray:
    """Distance of every pixel from a segment, in unit cells, `[sample, side, side]`."""
    vertical, horizontal = ((_positions(side) + offset[:, [axis]] - start[:, [axis]]) for axis in (0, 1))
    along = vertical[:, :, None] * direction[:, None, None, 0] + horizontal[:, None, :] * direction[:, None, None, 1]
    share = np.clip(along / (direction**2).sum(axis=1)[:, None, None], 0.0, 1.0)
    rest = (
        vertical[:, :, None] - share * direction[:, None, None, 0],
        horizontal[:, None, :] - share * direction[:, None, None, 1],
    )
    return np.hypot(*rest)
