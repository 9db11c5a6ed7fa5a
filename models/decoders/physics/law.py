"""The interface of a physical law: named parameters and a mean curve."""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from causalpima.models.batch import Modality
from causalpima.models.user_code import one_line

__all__ = [
    "Axes",
    "Axis",
    "LawCurve",
    "ParameterVector",
    "PhysicalParameter",
    "PhysicsLaw",
    "check_interface",
    "check_law",
]


# A named physical parameter: unit, bounds, starting value, and the unconstrained scale on which it is trained.


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


# The axes on which a law is drawn: where positions and values lie, and their units.


_SPREAD = 2.0
_MOST_ROUNDING = 0.05


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
            ValueError: It is no curve with two or more different positions, or float32 cannot hold its values or
                positions.
        """
        offset, spread = modality.standardisation.offset, modality.standardisation.scale
        if offset is not None:
            raise ValueError(
                f"{modality.name}: expected differences that float32 can hold, in which a physics law is computed, got "
                f"a standard deviation of {spread:g} at values around {offset:g}; subtract a constant from them that "
                "the law allows, give them in another unit, or choose --modality."
                f"{modality.name}.decoder.kind mlp"
            )
        if modality.positions is None or modality.positions.unique().numel() < 2:
            raise ValueError(
                f"{modality.name}: expected a curve with two or more positions, got a {modality.kind} without; "
                f"a physics decoder is for curves"
            )
        positions = np.unique(modality.positions.double().cpu().numpy())
        gaps = np.diff(positions)
        with np.errstate(over="ignore"):
            lost = np.abs(positions.astype(np.float32) - positions).max()
        if lost > _MOST_ROUNDING * np.median(gaps):
            raise ValueError(
                f"{modality.position_name}: expected positions of {modality.name!r} whose distances float32 can hold, "
                f"in which a physics law is computed, got distances of {np.median(gaps):g} at positions up to "
                f"{np.abs(positions).max():g}; subtract the first position, or give them in another unit"
            )
        low, high = (float(modality.standardisation.invert(np.float64(side * _SPREAD))) for side in (-1, 1))
        return cls(
            Axis(float(positions[0]), float(positions[-1]), float(np.median(gaps)), modality.position_unit),
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


# All parameters of a law as one vector, physical and unconstrained.


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


# Does a law keep its interface? Said in one line that names it, before anything is trained.


def check_interface(law: PhysicsLaw) -> None:
    """Check what does not hang on the data: parameters, arguments of `mean`, shape and type of what it returns.

    Args:
        law: The law.

    Raises:
        ValueError: No parameters, `mean` that takes others than are declared, that fails, or whose result is no
            differentiable tensor that broadcasts.
    """
    _curve(law, torch.linspace(0.1, 1.0, 7, dtype=torch.float64))


def check_law(law: PhysicsLaw, position: Tensor) -> None:
    """Check a law at its starting values, on the positions of the data.

    Args:
        law: The law, bound to the data.
        position: `[D]`.

    Raises:
        ValueError: As `check_interface`, and where the curve or its derivatives are not finite.
    """
    curve, unconstrained = _curve(law, position)
    if not torch.isfinite(curve).all():
        raise ValueError(
            f"{_name(law)}: expected a finite mean() at the starting values on the positions of the data, from "
            f"{float(position.min()):g} to {float(position.max()):g}, got nan or infinity; check bounds and starts"
        )
    (gradient,) = torch.autograd.grad(curve.sum(), unconstrained)
    if not torch.isfinite(gradient).all():
        raise ValueError(
            f"{_name(law)}: expected finite derivatives of mean() at the starting values, got nan or infinity; "
            f"check roots, powers and logarithms of zero"
        )


def _curve(law: PhysicsLaw, position: Tensor) -> tuple[Tensor, Tensor]:
    """The curve of two equal sets of parameters, and their unconstrained values."""
    vector = ParameterVector(_declared(law))
    _check_arguments(law, vector.names)
    unconstrained = vector.start().to(position).expand(2, -1).clone().requires_grad_()
    physical = vector.to_physical(unconstrained).unsqueeze(-1).unbind(-2)
    return _evaluate(law, position, dict(zip(vector.names, physical, strict=True))), unconstrained


def _declared(law: PhysicsLaw) -> tuple[PhysicalParameter, ...]:
    declared = getattr(law, "parameters", None)
    if not isinstance(declared, tuple) or not all(isinstance(item, PhysicalParameter) for item in declared):
        raise ValueError(f"{_name(law)}: expected `parameters` as a tuple of PhysicalParameter, got {declared!r}")
    return declared


def _check_arguments(law: PhysicsLaw, names: tuple[str, ...]) -> None:
    """Compare the arguments of `mean` after the position with the declared names, unless it takes any."""
    arguments = list(inspect.signature(law.mean).parameters.values())
    takes_any = any(argument.kind is argument.VAR_KEYWORD for argument in arguments)
    taken = {argument.name for argument in arguments[1:] if argument.kind is not argument.VAR_KEYWORD}
    if not takes_any and taken != set(names):
        raise ValueError(
            f"{_name(law)}: expected mean(position, {', '.join(names)}) as in `parameters`, "
            f"got mean({', '.join(argument.name for argument in arguments)})"
        )


def _evaluate(law: PhysicsLaw, position: Tensor, arguments: dict[str, Tensor]) -> Tensor:
    try:
        curve = law.mean(position, **arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ValueError(f"{_name(law)}: mean() fails at the starting values: {one_line(error)}") from error
    expected = (2, position.shape[0])
    if not isinstance(curve, Tensor) or not _broadcasts(curve.shape, expected):
        got = list(curve.shape) if isinstance(curve, Tensor) else type(curve).__name__
        raise ValueError(
            f"{_name(law)}: expected mean() of parameters [2, 1] on positions [{expected[1]}] to be a tensor "
            f"{list(expected)}, got {got}; use torch functions that broadcast"
        )
    if not curve.requires_grad:
        raise ValueError(f"{_name(law)}: expected mean() to be differentiable in its parameters; use torch functions")
    return curve


def _broadcasts(shape: torch.Size, expected: tuple[int, int]) -> bool:
    pairs = zip(reversed(shape), reversed(expected), strict=False)
    return len(shape) <= 2 and all(size in (1, wanted) for size, wanted in pairs)


def _name(law: PhysicsLaw) -> str:
    return f"law {type(law).__name__}"


# A law on the positions and the scale of a modality, as a function of unconstrained parameters.


_LOWEST = -10.0


class LawCurve(nn.Module):
    """u `[*b, P]` -> curve `[*b, D]` on the scale of the model.

    A logarithm is taken of means that are at least `floor`, ten standard deviations below the centre of the data on
    the logarithmic scale; below it the curve is flat and so are its gradients. Nothing measured lies there.

    Args:
        law: The law; it is bound to the modality here.
        modality: Positions, unit and standardisation of the curves.

    Raises:
        ValueError: The modality is no curve, or the law breaks its interface on it.
    """

    position: Tensor

    def __init__(self, law: PhysicsLaw, modality: Modality) -> None:
        super().__init__()
        self.law = law.bind(modality)
        self.parameters_of_law = ParameterVector(self.law.parameters)
        self.standardisation = modality.standardisation
        self.floor = float(self.standardisation.invert(torch.tensor(_LOWEST, dtype=torch.float64)))
        assert modality.positions is not None  # `bind` has seen them
        positions = modality.positions.to(torch.float64)
        check_law(self.law, positions)
        self.register_buffer("position", positions, persistent=False)

    @property
    def n_parameters(self) -> int:
        """P."""
        return len(self.parameters_of_law)

    def in_unit(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b D"]:
        """The curve in the unit of the data."""
        physical = self.parameters_of_law.to_physical(unconstrained).unsqueeze(-1).unbind(-2)
        arguments = dict(zip(self.parameters_of_law.names, physical, strict=True))
        position = self.position.to(unconstrained.dtype)
        return self.law.mean(position, **arguments).expand(*unconstrained.shape[:-1], position.shape[0])

    def forward(self, unconstrained: Float[Tensor, "*b P"]) -> Float[Tensor, "*b D"]:
        """The curve on the scale of the model."""
        curve = self.in_unit(unconstrained)
        if self.standardisation.transform == "log":
            curve = curve.clamp(min=self.floor)
        return self.standardisation.apply(curve)

    def with_jacobian(
        self, unconstrained: Float[Tensor, "*b P"]
    ) -> tuple[Float[Tensor, "*b D"], Float[Tensor, "*b D P"]]:
        """The curve and its exact derivatives with respect to u.

        `v -> J^T v` is linear, so its derivative by v along each parameter is a column of J: P reverse passes, and laws
        need nothing but reverse mode.
        """
        with torch.enable_grad():
            inputs = unconstrained.detach().requires_grad_()
            curve = self(inputs)
            weights = torch.zeros_like(curve, requires_grad=True)
            # The sum, as gradients with respect to something else than a number import SymPy, 2.5 s of CPU.
            (pulled,) = torch.autograd.grad((curve * weights).sum(), inputs, create_graph=True)
            columns = [
                torch.autograd.grad(one.sum(), weights, retain_graph=True, materialize_grads=True)[0]
                for one in pulled.unbind(-1)
            ]
        return curve.detach(), torch.stack(columns, -1)
