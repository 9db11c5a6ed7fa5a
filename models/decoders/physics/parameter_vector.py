"""All parameters of a law as one vector, physical and unconstrained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.decoders.physics.parameter import PhysicalParameter

__all__ = ["ParameterVector"]


class ParameterVector:
    """The parameters x of a law as a vector, and the bijection to unconstrained values u.

    A parameter that is declared `above` another has that one's value for its lower bound, so the bijection goes
    through the parameters in their order.

    Args:
        parameters: In the order of the vector.

    Raises:
        ValueError: None at all, names that are not unique, `above` a parameter that does not come before.
    """

    def __init__(self, parameters: Sequence[PhysicalParameter]) -> None:
        self.parameters = tuple(parameters)
        self.names = tuple(parameter.name for parameter in self.parameters)
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"parameters of a law: expected one or more with different names, got {list(self.names)}")
        for number, parameter in enumerate(self.parameters):
            if parameter.above is not None and parameter.above not in self.names[:number]:
                raise ValueError(
                    f"parameter {parameter.name}: expected `above` to be one of those before it, "
                    f"{list(self.names[:number])}, got {parameter.above!r}"
                )

    def __len__(self) -> int:
        return len(self.parameters)

    def start(self) -> Float[Tensor, " P"]:
        """Starting values, unconstrained, float64."""
        return self.to_unconstrained(torch.tensor([p.start for p in self.parameters], dtype=torch.float64))

    def to_physical(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b P"]:
        """x of u."""
        found: dict[str, Tensor] = {}
        for parameter, u in zip(self.parameters, unconstrained.unbind(-1), strict=True):
            lower = None if parameter.above is None else found[parameter.above]
            found[parameter.name] = parameter.to_physical(u, lower)
        return torch.stack(list(found.values()), -1)

    def to_unconstrained(self, physical: Float[Tensor, "*b P"]) -> Float[Tensor, "*b P"]:
        """u of x; what lies at or beyond a bound is taken to lie just inside."""
        given, found = dict(zip(self.names, physical.unbind(-1), strict=True)), []
        for parameter in self.parameters:
            lower = None if parameter.above is None else given[parameter.above]
            found.append(parameter.to_unconstrained(given[parameter.name], lower))
        return torch.stack(found, -1)

    def wrapped(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b P"]:
        """u of the same curve, periodic parameters within half a period of their starts."""
        if all(parameter.period is None for parameter in self.parameters):
            return unconstrained
        columns = self.to_physical(unconstrained).unbind(-1)
        pairs = zip(self.parameters, columns, strict=True)
        return self.to_unconstrained(torch.stack([parameter.wrapped(x) for parameter, x in pairs], -1))

    def each_to_unconstrained(self, physical: Float[Tensor, "*b P"]) -> Float[Tensor, "*b P"]:
        """Every x on its own scale, by its fixed bounds alone: the scale on which its interval is symmetric."""
        pairs = zip(self.parameters, physical.unbind(-1), strict=True)
        return torch.stack([parameter.to_unconstrained(x) for parameter, x in pairs], -1)

    def each_to_physical(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b P"]:
        """The inverse of `each_to_unconstrained`."""
        pairs = zip(self.parameters, unconstrained.unbind(-1), strict=True)
        return torch.stack([parameter.to_physical(u) for parameter, u in pairs], -1)

    def draw(self, rng: np.random.Generator, n_draws: int) -> np.ndarray:
        """Physical values to start from, `[n_draws, P]`, inside all bounds."""
        found: dict[str, np.ndarray] = {}
        for parameter in self.parameters:
            fixed = np.full(n_draws, parameter.lower)
            lower = fixed if parameter.above is None else found[parameter.above]
            found[parameter.name] = parameter.draw(rng, lower)
        return np.stack(list(found.values()), -1)

    def is_at_bound(self, physical: Float[np.ndarray, "*b P"]) -> np.ndarray:
        """Which values lie at a bound, fixed or another parameter, `[*b, P]`."""
        given = dict(zip(self.names, np.moveaxis(physical, -1, 0), strict=True))
        found = []
        for parameter in self.parameters:
            x = given[parameter.name]
            lower = np.full_like(x, parameter.lower) if parameter.above is None else given[parameter.above]
            found.append(parameter.is_at_bound(x, lower))
        return np.stack(found, -1)
