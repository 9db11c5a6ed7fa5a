"""Does a law keep its interface? Said in one line that names it, before anything is trained."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.parameter import PhysicalParameter
from models.decoders.physics.parameter_vector import ParameterVector
from models.user_code import one_line

__all__ = ["check_interface", "check_law"]


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
