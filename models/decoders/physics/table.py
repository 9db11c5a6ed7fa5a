"""The laws that are known by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from models.decoders.physics.damped_oscillation import DampedOscillation
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear import Linear
from models.decoders.physics.peaks import Peaks
from models.decoders.physics.piecewise_linear import PiecewiseLinear
from models.decoders.physics.power_law import PowerLaw

__all__ = ["LAWS"]

LAWS: Mapping[str, Callable[..., PhysicsLaw]] = {
    "piecewise_linear": PiecewiseLinear,
    "linear": Linear,
    "power_law": PowerLaw,
    "peaks": Peaks,
    "damped_oscillation": DampedOscillation,
}
