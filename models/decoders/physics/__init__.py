"""Decoders that are physical laws with named parameters."""

from models.decoders.physics.axes import Axes, Axis
from models.decoders.physics.damped_oscillation import DampedOscillation
from models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from models.decoders.physics.estimates import PhysicalEstimates
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear import Linear
from models.decoders.physics.loading import load_law
from models.decoders.physics.parameter import PhysicalParameter
from models.decoders.physics.peaks import Peaks
from models.decoders.physics.piecewise_linear import PiecewiseLinear
from models.decoders.physics.power_law import PowerLaw
from models.decoders.physics.table import LAWS
from models.decoders.physics.uncertainty import EstimateAccumulator

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
