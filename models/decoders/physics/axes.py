"""The axes on which a law is drawn: where positions and values lie, and their units."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from models.modality import Modality

__all__ = ["Axes", "Axis"]

_SPREAD = 2.0


@dataclass(frozen=True)
class Axis:
    """From where to where numbers go, and their unit.

    Attributes:
        low: The smallest.
        high: The largest.
        spacing: Usual distance of neighbours.
        unit: Their unit; empty if they have none.
    """

    low: float = 0.0
    high: float = 1.0
    spacing: float = 0.01
    unit: str = ""

    @property
    def width(self) -> float:
        """high - low."""
        return self.high - self.low

    @property
    def centre(self) -> float:
        """Halfway."""
        return 0.5 * (self.low + self.high)


@dataclass(frozen=True)
class Axes:
    """Positions and values of the curves that a law describes.

    Attributes:
        position: The positions.
        value: The values, from two standard deviations below their mean to two above.
    """

    position: Axis = field(default_factory=Axis)
    value: Axis = field(default_factory=Axis)

    @classmethod
    def of(cls, modality: Modality) -> Axes:
        """The axes of a modality.

        Raises:
            ValueError: It is no curve with two or more different positions.
        """
        if modality.positions is None or modality.positions.unique().numel() < 2:
            raise ValueError(
                f"{modality.name}: expected a curve with two or more positions, got a {modality.kind} without; "
                f"a physics decoder is for curves"
            )
        positions = np.sort(modality.positions.double().cpu().numpy())
        gaps = np.diff(positions)
        low, high = (float(modality.standardisation.invert(np.float64(side * _SPREAD))) for side in (-1, 1))
        return cls(
            Axis(float(positions[0]), float(positions[-1]), float(np.median(gaps[gaps > 0])), modality.position_unit),
            Axis(low, high, (high - low) / 100, modality.unit),
        )

    @property
    def slope(self) -> float:
        """A usual slope: the span of the values over that of the positions."""
        return self.value.width / self.position.width

    @property
    def slope_unit(self) -> str:
        """Unit of a slope."""
        value, position = self.value.unit, self.position.unit
        return value if not position else f"{value or 1}/{position}"

    @property
    def rate_unit(self) -> str:
        """Unit of one over a position."""
        return f"1/{self.position.unit}" if self.position.unit else ""
