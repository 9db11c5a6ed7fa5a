"""Damped oscillation: ring-down of a transient."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from models.decoders.physics.axes import Axes
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear_combinations import best_combination
from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["DampedOscillation"]

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
