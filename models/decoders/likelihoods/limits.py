"""Numbers kept where nothing overflows, without a dead end for the optimiser."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["clamp_with_way_back", "inverse_softplus"]


def clamp_with_way_back(value: Tensor, low: float, high: float) -> Tensor:
    """Clamp whose gradient outside the bounds is kept if a descent step along it leads back, and zero otherwise."""
    return _Clamp.apply(value, low, high)


def inverse_softplus(value: float) -> float:
    """The x of which log(1 + e^x) is `value`."""
    return value + math.log(-math.expm1(-value))


class _Clamp(Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, low: float, high: float) -> Tensor:
        ctx.save_for_backward(value < low, value > high)
        return value.clamp(low, high)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None, None]:
        below, above = ctx.saved_tensors
        gradient = torch.where(below, grad_outputs[0].clamp(max=0), grad_outputs[0])
        return torch.where(above, gradient.clamp(min=0), gradient), None, None
