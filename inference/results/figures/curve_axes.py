"""Axes of curves: positions, names, units, and the scale on which the values were modelled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from inference.data.multimodal import Axis
from inference.results.arrays import CurveArrays, ModalityArrays
from inference.results.text import shorten

__all__ = [
    "curve_axis",
    "decoded_where_measured",
    "draw_curve",
    "measured_somewhere",
    "position_label",
    "scale_positions",
    "scale_values",
    "value_label",
    "value_limits",
]

_Side = Literal["x", "y"]

_MARGIN = 0.05
_LABEL_WIDTH = 32
_MOST_DECADES = 6


def curve_axis(modality: ModalityArrays) -> Axis:
    """The positions of a curve; numbered where none are known."""
    return modality.axis or Axis("position", np.arange(modality.decoded.shape[-1], dtype=float))


def position_label(modality: ModalityArrays) -> str:
    """Name and unit of the positions: `strain (%)`."""
    axis = curve_axis(modality)
    return _with_unit(axis.name, axis.unit)


def value_label(name: str, modality: ModalityArrays) -> str:
    """What the values are, by the name of the modality: `stress (MPa)`."""
    return _with_unit(name, modality.unit)


def _with_unit(name: str, unit: str) -> str:
    """The unit stays whole where it is not most of the label."""
    after = f" ({shorten(unit, _LABEL_WIDTH // 2)})" if unit else ""
    return shorten(name, _LABEL_WIDTH - len(after)) + after


def draw_curve(ax: Axes, positions: np.ndarray, values: np.ndarray, **style: Any) -> None:
    """A line that breaks where elements are missing; a point without neighbours is a dot."""
    (line,) = ax.plot(positions, values, **style)
    there = np.pad(np.isfinite(values), 1)
    alone = there[1:-1] & ~there[:-2] & ~there[2:]
    if alone.any():
        line.set(marker=".", markersize=3, markevery=np.flatnonzero(alone).tolist(), markeredgewidth=0)


def measured_somewhere(curves: CurveArrays) -> np.ndarray:
    """Positions at which any drawn curve of a cell was measured, `[C, position]`."""
    there: np.ndarray = np.isfinite(curves.examples).any(axis=1)
    return there


def decoded_where_measured(modality: ModalityArrays) -> np.ndarray:
    """Decoded means `[C, position]`, NaN where no drawn curve of the cell was measured, unless that is everywhere."""
    if modality.curves is None:
        return modality.decoded
    measured = measured_somewhere(modality.curves)
    return np.where(measured | ~measured.any(axis=1, keepdims=True), modality.decoded, np.nan)


def scale_positions(ax: Axes, modality: ModalityArrays) -> None:
    """From the first to the last position, with few numbers."""
    positions = curve_axis(modality).values
    low, high = float(positions.min()), float(positions.max())
    ax.set_xlim(low, high if high > low else low + 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4))


def scale_values(ax: Axes, modality: ModalityArrays, limits: tuple[float, float], side: _Side = "y") -> None:
    """Limits, and a logarithmic scale where the values were modelled on one; `side` is where the values stand."""
    ax.set(**{f"{side}lim": limits})
    if modality.transform == "identity":
        return
    options = {"linear_width": modality.knee} if modality.transform == "asinh" else {}
    (ax.set_xscale if side == "x" else ax.set_yscale)(modality.transform, **options)
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(_decades(modality, limits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def _decades(modality: ModalityArrays, limits: tuple[float, float]) -> list[float]:
    """Powers of ten between the limits, for `asinh` those above its knee, of either sign, and zero; else the limits."""
    smallest = modality.knee if modality.transform == "asinh" else limits[0]
    largest = max(abs(limit) for limit in limits)
    powers = 10.0 ** np.arange(np.floor(np.log10(smallest)), np.ceil(np.log10(largest)) + 1)
    powers = powers[powers >= smallest]
    powers = powers[:: len(powers) // _MOST_DECADES + 1]
    ticks = powers if modality.transform == "log" else np.concatenate([-powers[::-1], [0.0], powers])
    between = ticks[(ticks >= limits[0]) & (ticks <= limits[1])]
    return [float(tick) for tick in (between if len(between) > 1 else limits)]


def value_limits(modality: ModalityArrays, arrays: Iterable[np.ndarray]) -> tuple[float, float]:
    """Lowest and highest finite value with a margin, on the scale of `scale_values`."""
    values = np.concatenate([np.ravel(array).astype(float) for array in arrays])
    finite = values[np.isfinite(values) & ((values > 0) | (modality.transform != "log"))]
    if not finite.size:
        return (0.0, 1.0) if modality.transform != "log" else (1.0, 10.0)
    scaled = _forward(modality, np.array([finite.min(), finite.max()]))
    margin = _MARGIN * float(np.ptp(scaled)) or 0.5
    low, high = _backward(modality, scaled + np.array([-margin, margin]))
    return float(low), float(high)


def _forward(modality: ModalityArrays, values: np.ndarray) -> np.ndarray:
    if modality.transform == "log":
        return np.log(values)
    return np.arcsinh(values / modality.knee) if modality.transform == "asinh" else values


def _backward(modality: ModalityArrays, scaled: np.ndarray) -> np.ndarray:
    if modality.transform == "log":
        return np.exp(scaled)
    return modality.knee * np.sinh(scaled) if modality.transform == "asinh" else scaled
