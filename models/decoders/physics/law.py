"""The interface of a physical law: named parameters and a mean curve."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from models.decoders.physics.axes import Axes
from models.decoders.physics.parameter import PhysicalParameter
from models.modality import Modality

__all__ = ["PhysicsLaw"]


class PhysicsLaw(ABC):
    """A curve over positions with physical parameters; what a user writes to bring knowledge of their own.

    Two members are needed, `parameters` and `mean`; the other methods have defaults. See docs/physics.md.

    Attributes:
        parameters: The parameters, in the order in which they are reported.
    """

    parameters: tuple[PhysicalParameter, ...]

    @abstractmethod
    def mean(self, position: Tensor, *_: Any, **parameters: Any) -> Tensor:
        """The curve, in the unit of the data, with differentiable torch functions that broadcast.

        Args:
            position: `[D]`, in the unit of the positions.
            parameters: Every parameter by its name, `[..., 1]`, in its unit, inside its bounds.

        Returns:
            `[..., D]`.
        """

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """The parameters with bounds, starts and units that suit the data; default: as they are.

        It is called on the copy that `bind` makes, so it may also keep on `self` what `mean` needs to know.

        Args:
            axes: Where the positions and the values lie.

        Raises:
            ValueError: The law makes no sense on these positions.
        """
        return self.parameters

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """Values to start from, read off a measured curve; default: none.

        Args:
            position: `[D]`.
            curve: Mean of the measured curves of one cell, `[D]`, in the unit of the data; NaN where nobody measured.

        Returns:
            Values by name; those that are left out, and all where any is not finite, start elsewhere.
        """
        return {}

    def bind(self, modality: Modality) -> PhysicsLaw:
        """A copy whose parameters suit a modality (see `for_axes`)."""
        bound = copy.copy(self)
        bound.parameters = bound.for_axes(Axes.of(modality))
        return bound
