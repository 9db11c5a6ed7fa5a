"""Laws with planted parameters: the table that every test of laws goes through, and data drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import voigt_profile
from torch import Tensor

from causalpima.models.batch import Modality, Standardisation, Transform
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.law import PhysicsLaw
from causalpima.models.decoders.physics.laws import load_law

__all__ = ["PLANTED", "PlantedLaw", "every_law"]


@dataclass(frozen=True)
class PlantedLaw:
    """A law, the truth, and an independent formula of its curve.

    Attributes:
        law: Key of `LAWS`.
        options: Options of the law.
        positions: First, last and number of positions.
        truth: Parameters by name.
        formula: Curve of positions and parameters, in NumPy.
        noise: Standard deviation of the noise of an element, on the transformed scale of the data.
        transform: Scale on which the data are modelled.
    """

    law: str
    positions: tuple[float, float, int]
    truth: Mapping[str, float]
    formula: Callable[..., np.ndarray]
    noise: float
    options: Mapping[str, Any] = field(default_factory=dict)
    transform: Transform = "identity"

    @property
    def position(self) -> np.ndarray:
        return np.linspace(*self.positions)

    @property
    def truth_array(self) -> np.ndarray:
        return np.array(list(self.truth.values()))

    def curve(self) -> np.ndarray:
        return self.formula(self.position, **self.truth)

    def build(self) -> PhysicsLaw:
        return load_law(self.law, self.options)

    def modality(self) -> Modality:
        raw = Standardisation(transform=self.transform).transformed(self.curve())
        scale = float(np.hypot(raw.std(), self.noise))
        standardisation = Standardisation(float(raw.mean()), scale, self.transform)
        position = torch.as_tensor(self.position)
        return Modality("curve", position.shape, "curve", position, "time", "s", "MPa", standardisation)

    def decoder(self, n_cells: int, **options: Any) -> PhysicsDecoder:
        return PhysicsDecoder(self.build(), self.modality(), n_cells, DecoderVariance(), 2, **options)

    def draw(self, n_cells: int, n_samples: int, seed: int, has_gaps: bool = False) -> tuple[Tensor, Tensor]:
        """Curves on the scale of the model and which elements are measured, `[cell, sample, position]`.

        The elements of a sample share a part of their noise; with gaps, a fifth of the elements is missing, and in
        every third sample the last tenth.
        """
        rng, shape = np.random.default_rng(seed), (n_cells, n_samples, len(self.position))
        standardisation = self.modality().standardisation
        noise = rng.normal(size=shape) + 0.5 * rng.normal(size=(n_cells, n_samples, 1))
        values = standardisation.apply(self.curve()) + self.noise / standardisation.scale * noise
        observed = np.ones(shape, dtype=bool)
        if has_gaps:
            observed &= rng.random(shape) > 0.2
            observed[:, ::3, -(len(self.position) // 10) :] = False
        return torch.as_tensor(np.where(observed, values, 0.0)), torch.as_tensor(observed)


def bent(t: np.ndarray, inflection: float, slope_1: float, slope_2: float, intercept: float = 0.0) -> np.ndarray:
    bend = intercept + slope_1 * inflection
    return np.where(t < inflection, intercept + slope_1 * t, bend + slope_2 * (t - inflection))


def three_pieces(t: np.ndarray, **x: float) -> np.ndarray:
    knots = [t[0], x["inflection_1"], x["inflection_2"], t[-1]]
    steps = np.diff(knots) * [x["slope_1"], x["slope_2"], x["slope_3"]]
    return np.interp(t, knots, x["intercept"] + x["slope_1"] * t[0] + np.cumsum([0, *steps]))


def bell(t: np.ndarray, centre: float, height: float, width: float) -> np.ndarray:
    return height * 2.0 ** -((2 * (t - centre) / width) ** 2)


def two_bells(t: np.ndarray, **x: float) -> np.ndarray:
    peaks = (bell(t, x[f"centre_{k}"], x[f"height_{k}"], x[f"width_{k}"]) for k in (1, 2))
    return np.sum([*peaks, np.full_like(t, x["baseline"])], 0)


def voigt(
    t: np.ndarray, centre: float, height: float, gaussian_width: float, lorentzian_width: float, baseline: float
) -> np.ndarray:
    widths = gaussian_width / 2.3548200450309493, lorentzian_width / 2
    return baseline + height * voigt_profile(t - centre, *widths) / voigt_profile(0.0, *widths)


PLANTED: Mapping[str, PlantedLaw] = {
    "two pieces": PlantedLaw(
        "piecewise_linear",
        (0.0, 10.0, 40),
        {"inflection": 3.9, "slope_1": 8.0, "slope_2": 1.0, "intercept": 2.0},
        bent,
        3.0,
    ),
    "two pieces through the origin": PlantedLaw(
        "piecewise_linear",
        (0.1, 10.0, 30),
        {"inflection": 6.1, "slope_1": 1.0, "slope_2": -4.0},
        bent,
        2.0,
        {"through_origin": True},
    ),
    "three pieces": PlantedLaw(
        "piecewise_linear",
        (-2.0, 10.0, 40),
        {"inflection_1": 2.1, "inflection_2": 6.3, "slope_1": 8.0, "slope_2": 1.0, "slope_3": 5.0, "intercept": 2.0},
        three_pieces,
        2.0,
        {"n_pieces": 3},
    ),
    "line": PlantedLaw(
        "linear",
        (-3.0, 10.0, 20),
        {"slope": -2.0, "intercept": 5.0},
        lambda t, slope, intercept: slope * t + intercept,
        3.0,
    ),
    "line through the origin": PlantedLaw(
        "linear", (0.0, 10.0, 20), {"slope": 2.0}, lambda t, slope: slope * t, 3.0, {"through_origin": True}
    ),
    "power": PlantedLaw(
        "power_law",
        (0.05, 0.9, 30),
        {"coefficient": 110.0, "exponent": 1.8},
        lambda t, coefficient, exponent: coefficient * t**exponent,
        4.0,
    ),
    "falling power over decades": PlantedLaw(
        "power_law",
        (1.0, 400.0, 30),
        {"coefficient": 0.3, "exponent": -0.6},
        lambda t, coefficient, exponent: coefficient * (t / 100) ** exponent,
        0.2,
        {"reference": 100.0},
        "log",
    ),
    "power from an offset": PlantedLaw(
        "power_law",
        (0.0, 2.0, 40),
        {"coefficient": 50.0, "exponent": 0.5, "offset": 20.0},
        lambda t, coefficient, exponent, offset: offset + coefficient * t**exponent,
        2.0,
        {"offset": True},
    ),
    "two Gaussian peaks": PlantedLaw(
        "peaks",
        (400.0, 700.0, 60),
        {
            "centre_1": 480.0,
            "height_1": 30.0,
            "width_1": 40.0,
            "centre_2": 575.0,
            "height_2": 60.0,
            "width_2": 70.0,
            "baseline": 5.0,
        },
        two_bells,
        3.0,
        {"n_peaks": 2},
    ),
    "Lorentzian peak on a slope": PlantedLaw(
        "peaks",
        (400.0, 700.0, 50),
        {"centre": 520.0, "height": 40.0, "width": 45.0, "baseline": 5.0, "baseline_slope": 0.02},
        lambda t, centre, height, width, baseline, baseline_slope: (
            baseline + baseline_slope * (t - 550.0) + height / (1 + ((t - centre) / (width / 2)) ** 2)
        ),
        3.0,
        {"shape": "lorentzian", "baseline": "linear"},
    ),
    "Voigt peak": PlantedLaw(
        "peaks",
        (400.0, 700.0, 40),
        {"centre": 530.0, "height": 40.0, "gaussian_width": 35.0, "lorentzian_width": 45.0, "baseline": 5.0},
        voigt,
        0.7,
        {"shape": "voigt"},
    ),
    "ring-down": PlantedLaw(
        "damped_oscillation",
        (2.0, 7.0, 60),
        {"amplitude": 3.0, "decay_rate": 0.7, "frequency": 2.3, "phase": 3.0, "offset": 0.5},
        lambda t, amplitude, decay_rate, frequency, phase, offset: (
            offset + amplitude * np.exp(-decay_rate * (t - 2)) * np.cos(2 * np.pi * frequency * (t - 2) + phase)
        ),
        0.5,
    ),
}

every_law = pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED.keys())
