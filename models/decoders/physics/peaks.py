"""Sum of peaks on a baseline: spectra, diffractograms, chromatograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.decoders.physics import profiles
from models.decoders.physics.axes import Axes
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["Peaks"]

_WIDTHS: Mapping[str, tuple[str, ...]] = {
    "gaussian": ("width",),
    "lorentzian": ("width",),
    "voigt": ("gaussian_width", "lorentzian_width"),
}
_BASELINES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "constant": ("baseline",),
    "linear": ("baseline", "baseline_slope"),
}


class Peaks(PhysicsLaw):
    """`y = baseline + Σ_k height_k · shape((t - centre_k) / widths_k)`.

    Parameters: for every peak `centre`, inside the range of the positions, in ascending order; `height` > 0;
    `width`, full width at half maximum, at most twice the range, or for a Voigt profile `gaussian_width` and
    `lorentzian_width`, those of its two parts. Names end in `_1`, `_2`, ... if there are several peaks. `baseline` is
    the level in the middle of the range, `baseline_slope` its slope.

    Args:
        n_peaks: Number of peaks.
        shape: `gaussian`, `lorentzian`, or `voigt`, the convolution of both.
        baseline: `none`, `constant` or `linear`.

    Raises:
        ValueError: No peak, or a shape or baseline that is not known.
    """

    def __init__(self, n_peaks: int = 1, shape: str = "gaussian", baseline: str = "constant") -> None:
        if n_peaks < 1:
            raise ValueError(f"n_peaks: expected one or more, got {n_peaks}")
        if shape not in _WIDTHS or baseline not in _BASELINES:
            raise ValueError(
                f"peaks: expected a shape of {', '.join(_WIDTHS)} and a baseline of {', '.join(_BASELINES)}, "
                f"got {shape!r} and {baseline!r}"
            )
        self.shape, self.baseline = shape, baseline
        self.endings = ("",) if n_peaks == 1 else tuple(f"_{k}" for k in range(1, n_peaks + 1))
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Peaks of equal height spread over the positions; see `PhysicsLaw.for_axes`."""
        self.middle = axes.position.centre
        peaks = [parameter for k in range(len(self.endings)) for parameter in self._peak(axes, k)]
        level = PhysicalParameter(
            "baseline",
            axes.value.unit,
            start=axes.value.low,
            scale=axes.value.width,
            description="level in the middle",
        )
        slope = PhysicalParameter(
            "baseline_slope", axes.slope_unit, scale=axes.slope, description="slope of the baseline"
        )
        return (*peaks, *(level, slope)[: len(_BASELINES[self.baseline])])

    def _peak(self, axes: Axes, k: int) -> list[PhysicalParameter]:
        position, value, ending, n_peaks = axes.position, axes.value, self.endings[k], len(self.endings)
        centre = PhysicalParameter(
            f"centre{ending}",
            position.unit,
            position.low,
            position.high,
            position.low + position.width * (k + 0.5) / n_peaks,
            "position of the maximum",
            above=f"centre{self.endings[k - 1]}" if k else None,
        )
        height = PhysicalParameter(
            f"height{ending}", value.unit, 0.0, start=value.width / 2, description="height above the baseline"
        )
        widest, width = 2 * position.width, 0.25 * position.width / n_peaks
        widths = [
            PhysicalParameter(f"{name}{ending}", position.unit, 0.0, widest, width, "full width at half maximum")
            for name in _WIDTHS[self.shape]
        ]
        return [centre, height, *widths]

    def mean(self, position: Tensor, *_: Any, **parameters: Tensor) -> Tensor:
        """See the class."""
        curve = sum(self._one(position, parameters, ending) for ending in self.endings)
        if self.baseline != "none":
            curve = curve + parameters["baseline"]
        if self.baseline == "linear":
            curve = curve + parameters["baseline_slope"] * (position - self.middle)
        return torch.as_tensor(curve)

    def _one(self, position: Tensor, parameters: Mapping[str, Tensor], ending: str) -> Tensor:
        widths = [parameters[f"{name}{ending}"] for name in _WIDTHS[self.shape]]
        distance = position - parameters[f"centre{ending}"]
        return parameters[f"height{ending}"] * getattr(profiles, self.shape)(distance, *widths)

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """The largest peak above the baseline, then the largest of what is left; see `PhysicsLaw.guess`."""
        known = np.isfinite(curve)
        if known.sum() < 3:
            return {}
        where, values = position[known], curve[known]
        level = np.quantile(values, 0.1) if self.baseline != "none" else 0.0
        rest, found = values - level, []
        for _ in self.endings:
            found.append(_largest_peak(where, rest))
            centre, height, width = found[-1]
            rest = rest - height * np.exp(-4 * np.log(2) * ((where - centre) / width) ** 2)
        return self._named(sorted(found)) | {"baseline": level}

    def _named(self, peaks: list[tuple[float, float, float]]) -> dict[str, float]:
        names = _WIDTHS[self.shape]
        values: dict[str, float] = {}
        for ending, (centre, height, width) in zip(self.endings, peaks, strict=True):
            values |= {f"centre{ending}": centre, f"height{ending}": height}
            values |= {f"{name}{ending}": width / len(names) for name in names}
        return values


def _largest_peak(position: np.ndarray, values: np.ndarray) -> tuple[float, float, float]:
    """Centre, height and width of the largest peak of a noisy curve, all positive."""
    smooth = np.convolve(np.pad(values, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    top = int(np.argmax(smooth))
    below = np.flatnonzero(smooth < 0.5 * smooth[top])
    left = position[below[below < top].max(initial=0)]
    right = position[below[below > top].min(initial=len(position) - 1)]
    width = max(right - left, np.ptp(position) / len(position))
    return float(position[top]), float(max(smooth[top], 1e-6 * np.ptp(values) + 1e-12)), float(width)
