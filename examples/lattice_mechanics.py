"""Compression of printed lattices: Gibson-Ashby scaling of a curve with one knee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["SCALING", "STRAIN", "Scaling", "curve_parameters", "piecewise_linear"]

STRAIN = np.linspace(0.0, 0.2, 100)
"""Nominal compressive strain of every curve, no unit, `[100]`."""

_SOLID_MODULUS = 2000.0  # MPa, a glassy photopolymer
_SOLID_STRENGTH = 60.0  # MPa


@dataclass(frozen=True)
class Scaling:
    r"""How stiffness and strength of a lattice follow from its relative density ρ.

    $$E = E_s\,C_1\,\rho^{n_1}, \qquad \sigma_y = \sigma_s\,C_2\,\rho^{n_2}$$

    (Gibson and Ashby, Cellular Solids), which holds over the narrow range of densities that one design has.

    Attributes:
        modulus: C₁ and n₁.
        strength: C₂ and n₂.
        hardening: Slope after the knee as a share of E.
    """

    modulus: tuple[float, float]
    strength: tuple[float, float]
    hardening: float


# Octet: struts are stretched, exponents 1, C₁ = 1/9, C₂ = 0.3. Gyroid: walls are bent, exponents 2 and 1.5.
SCALING: Mapping[str, Scaling] = {
    "gyroid": Scaling(modulus=(0.3, 2.0), strength=(0.3, 1.5), hardening=0.25),
    "octet": Scaling(modulus=(1 / 9, 1.0), strength=(0.3, 1.0), hardening=0.1),
}


def curve_parameters(scaling: Scaling, density: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters of the curve of a lattice of a relative density.

    Args:
        scaling: Of the lattice's type.
        density: Relative density in (0, 1), any shape.

    Returns:
        In the shape of `density`: `inflection`, the strain σ_y / E at which the slope changes; `slope_1` = E before and
        `slope_2` after it, in MPa.
    """
    modulus = _SOLID_MODULUS * scaling.modulus[0] * density ** scaling.modulus[1]
    strength = _SOLID_STRENGTH * scaling.strength[0] * density ** scaling.strength[1]
    return {"inflection": strength / modulus, "slope_1": modulus, "slope_2": scaling.hardening * modulus}


def piecewise_linear(
    strain: np.ndarray, inflection: np.ndarray, slope_1: np.ndarray, slope_2: np.ndarray
) -> np.ndarray:
    """The continuous curve of two pieces through the origin, s₁ε + (s₂ − s₁) max(ε − inflection, 0).

    Args:
        strain: `[position]`.
        inflection: Strain at which the slope changes, `[sample]`.
        slope_1: Slope before it, `[sample]`.
        slope_2: Slope after it, `[sample]`.

    Returns:
        `[sample, position]` in the unit of the slopes.
    """
    beyond = np.maximum(strain - inflection[:, None], 0.0)
    return slope_1[:, None] * strain + (slope_2 - slope_1)[:, None] * beyond
