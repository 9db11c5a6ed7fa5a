"""Decoders that are physical laws with named parameters."""

from models.decoders.physics.axes import Axes, Axis
from models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear import Linear
from models.decoders.physics.loading import load_law
from models.decoders.physics.parameter import PhysicalParameter
from models.decoders.physics.piecewise_linear import PiecewiseLinear
from models.decoders.physics.table import LAWS

__all__ = [
    "LAWS",
    "Axes",
    "Axis",
    "Linear",
    "ParameterSource",
    "PhysicalParameter",
    "PhysicsDecoder",
    "PhysicsLaw",
    "PiecewiseLinear",
    "load_law",
]
