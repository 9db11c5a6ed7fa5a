"""Straight line: a stiffness, a calibration, a drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from models.decoders.physics.axes import Axes
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear_combinations import best_combination
from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["Linear"]


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
