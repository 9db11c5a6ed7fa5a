"""Continuous piecewise linear curve: elastic and plastic part of a stress-strain curve."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.decoders.physics.axes import Axes
from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.linear_combinations import best_combination
from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["PiecewiseLinear"]

_GRID = {1: 40, 2: 15, 3: 9}


class PiecewiseLinear(PhysicsLaw):
    """`y = y0 + s_1 t + Σ_k (s_{k+1} - s_k) max(t - t_k, 0)` (the paper's expert; docs/errata.md item 19).

    Parameters: `inflection` t_k (`inflection_1`, ... in ascending order if there are several), inside the range of the
    positions; slopes `slope_1`, ..., one for each piece; `intercept` y0, the value at position zero, unless the curve
    goes through the origin.

    Args:
        n_pieces: Number of pieces, two or more.
        through_origin: Whether y0 = 0.

    Raises:
        ValueError: Fewer than two pieces.
    """

    def __init__(self, n_pieces: int = 2, through_origin: bool = False) -> None:
        if n_pieces < 2:
            raise ValueError(f"n_pieces: expected two or more, got {n_pieces}; one piece is the law `linear`")
        self.n_pieces, self.through_origin = n_pieces, through_origin
        numbers = range(1, n_pieces)
        self.inflections = ("inflection",) if n_pieces == 2 else tuple(f"inflection_{k}" for k in numbers)
        self.slopes = tuple(f"slope_{k}" for k in range(1, n_pieces + 1))
        self.parameters = self.for_axes(Axes())

    def for_axes(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        """Inflections spread over the positions, slopes that fall from piece to piece; see `PhysicsLaw.for_axes`."""
        inflections = [self._inflection(axes, k) for k in range(self.n_pieces - 1)]
        falling = np.linspace(1.5, 0.5, self.n_pieces) * axes.slope
        slopes = [
            PhysicalParameter(
                name, axes.slope_unit, start=float(start), scale=axes.slope, description=f"slope of piece {k}"
            )
            for k, (name, start) in enumerate(zip(self.slopes, falling, strict=True), 1)
        ]
        return (*inflections, *slopes, *self._intercept(axes))

    def _inflection(self, axes: Axes, k: int) -> PhysicalParameter:
        position = axes.position
        return PhysicalParameter(
            self.inflections[k],
            position.unit,
            position.low,
            position.high,
            position.low + position.width * (k + 1) / self.n_pieces,
            f"where piece {k + 1} ends",
            above=self.inflections[k - 1] if k else None,
        )

    def _intercept(self, axes: Axes) -> tuple[PhysicalParameter, ...]:
        if self.through_origin:
            return ()
        start = axes.value.low - axes.slope * axes.position.low
        described = "value at position zero"
        return (
            PhysicalParameter("intercept", axes.value.unit, start=start, scale=axes.value.width, description=described),
        )

    def mean(self, position: Tensor, *_: Any, **parameters: Tensor) -> Tensor:
        """See the class."""
        slopes = [parameters[name] for name in self.slopes]
        curve = slopes[0] * position + (0.0 if self.through_origin else parameters["intercept"])
        for name, before, after in zip(self.inflections, slopes[:-1], slopes[1:], strict=True):
            curve = curve + (after - before) * torch.relu(position - parameters[name])
        return curve

    def guess(self, position: np.ndarray, curve: np.ndarray) -> Mapping[str, float]:
        """Inflections on a grid, the best slopes for each; see `PhysicsLaw.guess`."""
        n_points = _GRID.get(self.n_pieces - 1, self.n_pieces + 3)
        inside = np.linspace(position.min(), position.max(), n_points + 2)[1:-1]
        grid = list(combinations(inside, self.n_pieces - 1))
        best, coefficients = best_combination(curve, np.stack([self._design(position, kinks) for kinks in grid]))
        slopes = np.cumsum(coefficients[: self.n_pieces])
        values = dict(zip(self.inflections, grid[best], strict=True)) | dict(zip(self.slopes, slopes, strict=True))
        return values if self.through_origin else values | {"intercept": coefficients[-1]}

    def _design(self, position: np.ndarray, kinks: tuple[float, ...]) -> np.ndarray:
        columns = [position, *(np.maximum(position - kink, 0) for kink in kinks)]
        return np.stack(columns if self.through_origin else [*columns, np.ones_like(position)], -1)
