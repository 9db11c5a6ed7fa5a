"""Damped oscillation: ring-down of a transient."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from causalpima.models.decoders.physics import profiles
from causalpima.models.decoders.physics.law import Axes, PhysicalParameter, PhysicsLaw, check_interface
from causalpima.models.user_code import UserKind, call_user_code, named_object

__all__ = [
    "LAWS",
    "DampedOscillation",
    "Linear",
    "Peaks",
    "PiecewiseLinear",
    "PowerLaw",
    "best_combination",
    "is_law_class",
    "load_law",
]


# Guesses for laws that are linear in most of their parameters: try the others on a grid, solve for these.


def best_combination(
    curve: Float[np.ndarray, " D"], designs: Float[np.ndarray, "G D K"]
) -> tuple[int, Float[np.ndarray, " K"]]:
    """The design whose columns combine to the curve best.

    Args:
        curve: `[D]`, NaN where nothing is known.
        designs: One matrix for each point of a grid.

    Returns:
        The number of the design with the smallest squared error, and its coefficients; NaN if the curve has fewer
        known elements than coefficients.
    """
    known, n_columns = np.isfinite(curve), designs.shape[-1]
    if known.sum() < n_columns:
        return 0, np.full(n_columns, np.nan)
    basis, values, _ = np.linalg.svd(designs[:, known], full_matrices=False)
    is_direction = values > 1e-10 * values.max(-1, keepdims=True)
    explained = np.square(np.einsum("gdk,d->gk", basis, curve[known]) * is_direction).sum(-1)
    best = int(np.argmax(explained))
    return best, np.linalg.lstsq(designs[best, known], curve[known], rcond=None)[0]


_DECAYS = np.array([0.1, 1.0, 3.0, 10.0, 30.0])


class DampedOscillation(PhysicsLaw):
    """`y = y0 + A exp(-λ t) cos(2π f t + φ)`, t counted from the first position.

    Parameters: `amplitude` A > 0; `decay_rate` λ > 0; `frequency` f, between zero and half the sampling rate;
    `phase` φ in radians, between -π and π; `offset` y0.
    """

    def __init__(self) -> None:
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Three periods that decay to 1/e over the positions; see `PhysicsLaw.for_axes`."""
        position, value = axes.position, axes.value
        self.first = position.low
        fastest = 0.5 / position.spacing
        frequency = min(3 / position.width, 0.5 * fastest)
        return (
            PhysicalParameter("amplitude", value.unit, 0.0, start=value.width / 2, description="amplitude at first"),
            PhysicalParameter("decay_rate", axes.rate_unit, 0.0, start=1 / position.width, description="decay rate"),
            PhysicalParameter("frequency", axes.rate_unit, 0.0, fastest, frequency, description="periods per unit"),
            PhysicalParameter("phase", "rad", scale=1.0, period=2 * math.pi, description="phase at first"),
            PhysicalParameter("offset", value.unit, start=value.centre, scale=value.width, description="value at last"),
        )

    def mean(
        self,
        position: Tensor,
        amplitude: Tensor,
        decay_rate: Tensor,
        frequency: Tensor,
        phase: Tensor,
        offset: Tensor,
    ) -> Tensor:
        """See the class."""
        time = position - self.first
        return offset + amplitude * torch.exp(-decay_rate * time) * torch.cos(2 * math.pi * frequency * time + phase)

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """Frequencies and decay rates on a grid, the best sine, cosine and offset for each; see `PhysicsLaw.guess`."""
        time = position - self.first
        fastest = self.parameters[2].upper
        frequencies = np.arange(0.5, 2 * fastest * time.max()) / (2 * time.max())
        grid = [(decay, frequency) for decay in _DECAYS / time.max() for frequency in frequencies]
        decay, frequency = np.array(grid).T[..., None]
        envelope, angle = np.exp(-decay * time), 2 * np.pi * frequency * time
        designs = np.stack([envelope * np.cos(angle), envelope * np.sin(angle), np.ones_like(angle)], -1)
        best, (cosine, sine, offset) = best_combination(curve, designs)
        return {
            "amplitude": np.hypot(cosine, sine),
            "decay_rate": grid[best][0],
            "frequency": grid[best][1],
            "phase": np.arctan2(-sine, cosine),
            "offset": offset,
        }


# Straight line: a stiffness, a calibration, a drift.


class Linear(PhysicsLaw):
    """`y = y0 + s t`.

    Parameters: `slope` s; `intercept` y0, the value at position zero, unless the line goes through the origin.

    Args:
        through_origin: Whether y0 = 0.
    """

    def __init__(self, through_origin: bool = False) -> None:
        self.through_origin = through_origin
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Starts on a rising diagonal of the data; see `PhysicsLaw.for_axes`."""
        slope = PhysicalParameter("slope", axes.slope_unit, start=axes.slope, description="slope")
        start = axes.value.low - axes.slope * axes.position.low
        described = "value at position zero"
        intercept = PhysicalParameter(
            "intercept", axes.value.unit, start=start, scale=axes.value.width, description=described
        )
        return (slope,) if self.through_origin else (slope, intercept)

    def mean(self, position: Tensor, *_: Any, **parameters: Tensor) -> Tensor:
        """See the class."""
        line = parameters["slope"] * position
        return line if self.through_origin else line + parameters["intercept"]

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """The exact solution; see `PhysicsLaw.guess`."""
        columns = [position] if self.through_origin else [position, np.ones_like(position)]
        _, coefficients = best_combination(curve, np.stack(columns, -1)[None])
        return dict(zip((parameter.name for parameter in self.parameters), coefficients, strict=True))


# Continuous piecewise linear curve: elastic and plastic part of a stress-strain curve.


_GRID = {1: 40, 2: 15, 3: 9}


class PiecewiseLinear(PhysicsLaw):
    """`y = y0 + s_1 t + Σ_k (s_{k+1} - s_k) max(t - t_k, 0)` (the paper's expert; docs/errata.md item 19).

    Parameters: `inflection` t_k (`inflection_1`, ... in ascending order if there are several), inside the range of the
    positions; slopes `slope_1`, ..., one for each piece; `intercept` y0, the value at position zero, unless the curve
    goes through the origin.

    Args:
        n_pieces: Number of pieces, two or more.
        through_origin: Whether y0 = 0.

    Raises:
        ValueError: Fewer than two pieces.
    """

    def __init__(self, n_pieces: int = 2, through_origin: bool = False) -> None:
        if n_pieces < 2:
            raise ValueError(f"n_pieces: expected two or more, got {n_pieces}; one piece is the law `linear`")
        self.n_pieces, self.through_origin = n_pieces, through_origin
        numbers = range(1, n_pieces)
        self.inflections = ("inflection",) if n_pieces == 2 else tuple(f"inflection_{k}" for k in numbers)
        self.slopes = tuple(f"slope_{k}" for k in range(1, n_pieces + 1))
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Inflections spread over the positions, slopes that fall from piece to piece; see `PhysicsLaw.for_axes`."""
        inflections = [self._inflection(axes, k) for k in range(self.n_pieces - 1)]
        falling = np.linspace(1.5, 0.5, self.n_pieces) * axes.slope
        slopes = [
            PhysicalParameter(
                name, axes.slope_unit, start=float(start), scale=axes.slope, description=f"slope of piece {k}"
            )
            for k, (name, start) in enumerate(zip(self.slopes, falling, strict=True), 1)
        ]
        return (*inflections, *slopes, *self._intercept(axes))

    def _inflection(self, axes: Axes, k: int) -> PhysicalParameter:
        position = axes.position
        return PhysicalParameter(
            self.inflections[k],
            position.unit,
            position.low,
            position.high,
            position.low + position.width * (k + 1) / self.n_pieces,
            f"where piece {k + 1} ends",
            above=self.inflections[k - 1] if k else None,
        )

    def _intercept(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        if self.through_origin:
            return ()
        start = axes.value.low - axes.slope * axes.position.low
        described = "value at position zero"
        return (
            PhysicalParameter("intercept", axes.value.unit, start=start, scale=axes.value.width, description=described),
        )

    def mean(self, position: Tensor, *_: Any, **parameters: Tensor) -> Tensor:
        """See the class."""
        slopes = [parameters[name] for name in self.slopes]
        curve = slopes[0] * position + (0.0 if self.through_origin else parameters["intercept"])
        for name, before, after in zip(self.inflections, slopes[:-1], slopes[1:], strict=True):
            curve = curve + (after - before) * torch.relu(position - parameters[name])
        return curve

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """Inflections on a grid, the best slopes for each; see `PhysicsLaw.guess`."""
        n_points = _GRID.get(self.n_pieces - 1, self.n_pieces + 3)
        inside = np.linspace(position.min(), position.max(), n_points + 2)[1:-1]
        grid = list(combinations(inside, self.n_pieces - 1))
        best, coefficients = best_combination(curve, np.stack([self._design(position, kinks) for kinks in grid]))
        slopes = np.cumsum(coefficients[: self.n_pieces])
        values = dict(zip(self.inflections, grid[best], strict=True)) | dict(zip(self.slopes, slopes, strict=True))
        return values if self.through_origin else values | {"intercept": coefficients[-1]}

    def _design(self, position: np.ndarray, kinks: tuple[float, ...]) -> np.ndarray:
        columns = [position, *(np.maximum(position - kink, 0) for kink in kinks)]
        return np.stack(columns if self.through_origin else [*columns, np.ones_like(position)], -1)


# Power law: stiffness or strength against relative density, hardening, flow curves.


_EXPONENTS = np.arange(-4.0, 6.01, 0.1)


class PowerLaw(PhysicsLaw):
    """`y = y0 + C (t / reference)^n` for t >= 0.

    Gibson and Ashby: stiffness and strength of cellular solids against relative density (`reference` 1, no offset).
    With an offset: Ludwik's hardening σ_y + K ε^n, Herschel and Bulkley's flow curve τ_y + K γ̇^n.

    Parameters: `coefficient` C > 0, the value (above the offset) at the reference position; `exponent` n, positive
    where a position is zero; `offset` y0, if there is one.

    Args:
        offset: Whether there is an offset.
        reference: Position at which the power is one, in the unit of the positions.

    Raises:
        ValueError: A reference that is not positive.
    """

    def __init__(self, offset: bool = False, reference: float = 1.0) -> None:
        if not reference > 0:
            raise ValueError(f"reference: expected a positive position, got {reference}")
        self.has_offset, self.reference = offset, float(reference)
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Starts on a straight line through the data; see `PhysicsLaw.for_axes`."""
        if axes.position.low < 0:
            raise ValueError(
                f"power_law: expected positions that are not negative, got {axes.position.low}; a power is not defined"
            )
        start = abs(axes.value.high) * self.reference / axes.position.high
        coefficient = PhysicalParameter(
            "coefficient",
            axes.value.unit,
            0.0,
            start=start or 1.0,
            description=f"value at position {self.reference:g}",
        )
        lowest = 0.0 if axes.position.low == 0 else -np.inf
        exponent = PhysicalParameter("exponent", "", lowest, start=1.0, description="exponent")
        offset = PhysicalParameter("offset", axes.value.unit, scale=axes.value.width, description="value at zero")
        return (coefficient, exponent, offset) if self.has_offset else (coefficient, exponent)

    def mean(self, position: Tensor, *_: Any, **parameters: Tensor) -> Tensor:
        """See the class; zero to a power is zero, and so are its derivatives."""
        is_positive = position > 0
        log_ratio = torch.log(torch.where(is_positive, position / self.reference, 1.0))
        power = torch.where(is_positive, torch.exp(parameters["exponent"] * log_ratio), 0.0)
        curve = parameters["coefficient"] * power
        return curve + parameters["offset"] if self.has_offset else curve

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """Exponents on a grid, the best coefficients for each; see `PhysicsLaw.guess`."""
        exponents = _EXPONENTS[np.abs(_EXPONENTS) > 0.05]
        exponents = exponents if position.min() > 0 else exponents[exponents > 0]
        powers = (position / self.reference) ** exponents[:, None]
        columns = [powers, np.ones_like(powers)] if self.has_offset else [powers]
        best, coefficients = best_combination(curve, np.stack(columns, -1))
        names = ("coefficient", "offset")
        return {"exponent": exponents[best]} | dict(zip(names, coefficients, strict=False))


# Sum of peaks on a baseline: spectra, diffractograms, chromatograms.


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


# The laws that are known by name.


LAWS: Mapping[str, Callable[..., PhysicsLaw]] = {
    "piecewise_linear": PiecewiseLinear,
    "linear": Linear,
    "power_law": PowerLaw,
    "peaks": Peaks,
    "damped_oscillation": DampedOscillation,
}


# A law from its name, or from `module:Class` in a file of the user's own.


def load_law(name: str, options: Mapping[str, Any] | None = None) -> PhysicsLaw:
    """Build a law.

    Args:
        name: A key of `LAWS`, or `module:Class`; the module is found on Python's path or from the current directory.
        options: Arguments of the class.

    Raises:
        ValueError: Unknown name, module or class; no law; options that do not fit; a law that breaks its interface.
            Whether its curve is finite is checked when it meets the positions of the data.
    """
    build = named_object(f"law {name}", name, _KIND) if ":" in name else _shipped(name)
    law: PhysicsLaw = call_user_code(f"law {name}", build, options=options)
    check_interface(law)
    return law


def _shipped(name: str) -> Callable[..., PhysicsLaw]:
    if name not in LAWS:
        raise ValueError(f"law: expected one of {', '.join(LAWS)}, or module:Class for a law of your own, got {name!r}")
    return LAWS[name]


def is_law_class(value: object) -> bool:
    """Whether an object is a law that can be built."""
    return inspect.isclass(value) and issubclass(value, PhysicsLaw) and value is not PhysicsLaw


_KIND = UserKind("a class", is_law_class, "a subclass of causalpima.PhysicsLaw", "laws")
