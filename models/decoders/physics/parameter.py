"""A named physical parameter: unit, bounds, starting value, and the unconstrained scale on which it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["PhysicalParameter"]

_INTERIOR = 1e-6
_LOG_E_MINUS_1 = math.log(math.e - 1)  # softplus of it is 1


@dataclass(frozen=True)
class PhysicalParameter:
    r"""One parameter x of a law, and its unconstrained value u, of order one.

    * no bound: `x = start + scale · u`
    * one bound b: `x = b ± |start - b| · softplus(±u + log(e - 1))`, so that u = 0 is the starting value
    * two bounds: `x = lower + (upper - lower) · sigmoid(u)`

    x grows with u in all of them.

    Attributes:
        name: Name, an argument of the law's `mean`.
        unit: Unit; empty if it has none.
        lower: Lower bound, in that unit; x stays above it.
        upper: Upper bound; x stays below it.
        start: Starting value.
        description: A few words for people.
        above: Name of a parameter declared before it that this one exceeds: peaks in order, kinks in order.
        scale: Size of a usual change of a parameter without bounds; default |start|, or 1 where that is zero.
        period: Adding it changes nothing (2π of a phase); fitted values lie within half a period of the start.

    Raises:
        ValueError: A name that is no Python name, bounds or a scale that make no sense, a start that is not inside, a
            period and bounds.
    """

    name: str
    unit: str = ""
    lower: float = -math.inf
    upper: float = math.inf
    start: float = 0.0
    description: str = ""
    above: str | None = None
    scale: float | None = None
    period: float | None = None

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise ValueError(
                f"parameter {self.name!r}: expected a Python name, as an argument of mean() has; rename it"
            )
        if not self.lower < self.upper:
            raise ValueError(f"parameter {self.name}: expected lower < upper, got {self.lower} and {self.upper}")
        if not (math.isfinite(self.start) and self.lower < self.start < self.upper):
            raise ValueError(
                f"parameter {self.name}: expected a start inside ({self.lower}, {self.upper}), got {self.start}"
            )
        if self.scale is not None and not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"parameter {self.name}: expected a positive scale, got {self.scale}; leave it out")
        if self.period is not None and (self.has_bounds or not self.period > 0):
            raise ValueError(f"parameter {self.name}: expected a positive period and no bounds, got {self.period}")

    @property
    def has_bounds(self) -> bool:
        """Whether anything bounds it."""
        return self.above is not None or math.isfinite(self.lower) or math.isfinite(self.upper)

    @property
    def size(self) -> float:
        """Unit of u, in the unit of x: distance from the only bound to the start, or the scale of usual changes."""
        bounds = [bound for bound in (self.lower, self.upper) if math.isfinite(bound)]
        if len(bounds) == 1:
            return abs(self.start - bounds[0])
        return self.scale or abs(self.start) or 1.0

    def to_physical(self, unconstrained: Float[Tensor, "*b"], lower: Float[Tensor, "*b"] | None = None) -> Tensor:
        """x of u; `lower` takes the place of the lower bound where another parameter is the bound."""
        u, low = unconstrained, self.lower if lower is None else lower
        is_above = lower is not None or math.isfinite(self.lower)
        if is_above and math.isfinite(self.upper):
            return low + (self.upper - low) * torch.sigmoid(u)
        if is_above:
            return low + self.size * torch.nn.functional.softplus(u + _LOG_E_MINUS_1)
        if math.isfinite(self.upper):
            return self.upper - self.size * torch.nn.functional.softplus(_LOG_E_MINUS_1 - u)
        return self.start + self.size * u

    def to_unconstrained(self, physical: Float[Tensor, "*b"], lower: Float[Tensor, "*b"] | None = None) -> Tensor:
        """u of x; values at or beyond a bound are taken to lie just inside."""
        x, low = physical, self.lower if lower is None else lower
        is_above = lower is not None or math.isfinite(self.lower)
        if is_above and math.isfinite(self.upper):
            return torch.logit(((x - low) / (self.upper - low)).clamp(_INTERIOR, 1 - _INTERIOR))
        if is_above:
            return _inverse_softplus((x - low) / self.size) - _LOG_E_MINUS_1
        if math.isfinite(self.upper):
            return _LOG_E_MINUS_1 - _inverse_softplus((self.upper - x) / self.size)
        return (x - self.start) / self.size

    def wrapped(self, physical: Float[Tensor, "*b"]) -> Tensor:
        """x, brought to within half a period of the start if it has one."""
        if self.period is None:
            return physical
        return self.start + torch.remainder(physical - self.start + self.period / 2, self.period) - self.period / 2

    def is_at_bound(self, physical: np.ndarray, lower: np.ndarray, tolerance: float = 1e-4) -> np.ndarray:
        """Whether x lies within `tolerance` of a bound, as a share of the span, or of `size` with one bound.

        Args:
            physical: x.
            lower: Lower bounds, one for each value.
            tolerance: How near.
        """
        near = tolerance * (self.upper - self.lower if math.isfinite(self.upper - self.lower) else self.size)
        return (physical - lower < near) | (self.upper - physical < near)

    def draw(self, rng: np.random.Generator, lower: np.ndarray) -> np.ndarray:
        """Values to start from: uniform between two bounds, over two decades from one bound, else ± 2 `size`.

        Args:
            rng: Source of chance.
            lower: Lower bounds, one for each value.
        """
        if np.isfinite(lower).all() and math.isfinite(self.upper):
            return rng.uniform(lower, self.upper)
        decades = self.size * 10 ** rng.uniform(-1, 1, lower.shape)
        if np.isfinite(lower).all():
            return lower + decades
        return self.upper - decades if math.isfinite(self.upper) else rng.normal(self.start, 2 * self.size, lower.shape)


def _inverse_softplus(value: Tensor) -> Tensor:
    y = value.clamp(min=_INTERIOR)
    return y + torch.log(-torch.expm1(-y))
