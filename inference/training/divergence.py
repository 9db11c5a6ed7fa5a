"""A fit whose numbers stopped being finite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["DivergedError", "check_finite", "check_weights", "no_singular_matrices"]


class DivergedError(ArithmeticError):
    """Something that has to be finite is not; the message names it."""


def check_finite(name: str, value: Tensor | float) -> None:
    """Refuse NaN and infinities.

    Raises:
        DivergedError: `value` has some.
    """
    tensor = torch.as_tensor(value)
    if not bool(torch.isfinite(tensor).all()):
        found = f"{float(tensor)}" if tensor.numel() == 1 else "not finite"
        raise DivergedError(f"the {name} is {found}")


def check_weights(modules: nn.Module) -> None:
    """Refuse parameters that are not finite.

    Raises:
        DivergedError: The first such parameter.
    """
    for name, value in modules.named_parameters():
        check_finite(f"weight {name}", value.detach().sum())


@contextmanager
def no_singular_matrices() -> Iterator[None]:
    """A matrix that cannot be decomposed is a divergence, not a bug: its entries are beyond the precision of floats."""
    try:
        yield
    except torch.linalg.LinAlgError as error:
        raise DivergedError("the covariance of a cluster is not positive definite") from error
