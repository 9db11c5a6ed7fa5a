"""Decoders that are physical laws with named parameters."""

from models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from models.decoders.physics.law import Axes, Axis, PhysicalParameter, PhysicsLaw
from models.decoders.physics.laws import LAWS, DampedOscillation, Linear, Peaks, PiecewiseLinear, PowerLaw, load_law
from models.decoders.physics.uncertainty import EstimateAccumulator, PhysicalEstimates

__all__ = [
    "LAWS",
    "Axes",
    "Axis",
    "DampedOscillation",
    "EstimateAccumulator",
    "Linear",
    "ParameterSource",
    "Peaks",
    "PhysicalEstimates",
    "PhysicalParameter",
    "PhysicsDecoder",
    "PhysicsLaw",
    "PiecewiseLinear",
    "PowerLaw",
    "load_law",
]
