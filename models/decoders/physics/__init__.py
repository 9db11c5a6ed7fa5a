"""Decoders that are physical laws with named parameters."""

from causalpima.models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from causalpima.models.decoders.physics.law import Axes, Axis, PhysicalParameter, PhysicsLaw
from causalpima.models.decoders.physics.laws import (
    LAWS,
    DampedOscillation,
    Linear,
    Peaks,
    PiecewiseLinear,
    PowerLaw,
    load_law,
)
from causalpima.models.decoders.physics.uncertainty import EstimateAccumulator, PhysicalEstimates

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
