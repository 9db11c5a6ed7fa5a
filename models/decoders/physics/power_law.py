"""Power law: stiffness or strength against relative density, hardening, flow curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.decoders.physics.axes import Axes
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear_combinations import best_combination
from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["PowerLaw"]

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
