"""Does a law keep its interface? Said in one line that names it, before anything is trained."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor

from models.decoders.physics.law import PhysicsLaw
from models.decoders.physics.parameter import PhysicalParameter
from models.decoders.physics.parameter_vector import ParameterVector

__all__ = ["check_law"]


def check_law(law: PhysicsLaw, position: Tensor) -> None:
    """Check a law at its starting values.

    Args:
        law: The law.
        position: `[D]`, where it is evaluated.

    Raises:
        ValueError: No parameters, `mean` that takes others than are declared, a result that does not broadcast, is
            not finite, or has gradients that are not finite.
    """
    vector = ParameterVector(_declared(law))
    _check_arguments(law, vector.names)
    unconstrained = vector.start().to(position).expand(2, -1).clone().requires_grad_()
    physical = vector.to_physical(unconstrained).unsqueeze(-1).unbind(-2)
    curve = _evaluate(law, position, dict(zip(vector.names, physical, strict=True)))
    _check_gradient(law, curve, unconstrained)


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
    except Exception as error:
        raise ValueError(f"{_name(law)}: mean() fails at the starting values: {error}") from error
    expected = (2, position.shape[0])
    if not isinstance(curve, Tensor) or not _broadcasts(curve.shape, expected):
        got = list(curve.shape) if isinstance(curve, Tensor) else type(curve).__name__
        raise ValueError(
            f"{_name(law)}: expected mean() of parameters [2, 1] on positions [{expected[1]}] to be a tensor "
            f"{list(expected)}, got {got}; use torch functions that broadcast"
        )
    if not torch.isfinite(curve).all():
        raise ValueError(f"{_name(law)}: expected a finite mean() at the starting values, got nan or infinity")
    return curve


def _broadcasts(shape: torch.Size, expected: tuple[int, int]) -> bool:
    pairs = zip(reversed(shape), reversed(expected), strict=False)
    return len(shape) <= 2 and all(size in (1, wanted) for size, wanted in pairs)


def _check_gradient(law: PhysicsLaw, curve: Tensor, unconstrained: Tensor) -> None:
    if not curve.requires_grad:
        raise ValueError(f"{_name(law)}: expected mean() to be differentiable in its parameters; use torch functions")
    (gradient,) = torch.autograd.grad(curve.sum(), unconstrained)
    if not torch.isfinite(gradient).all():
        raise ValueError(f"{_name(law)}: expected finite derivatives of mean() at the starting values, got nan or inf")


def _name(law: PhysicsLaw) -> str:
    return f"law {type(law).__name__}"
