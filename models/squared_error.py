"""Squared errors of Gaussian likelihoods, each with one array of the size of the data saved for its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

__all__ = ["linear_squared_error", "squared_error"]


def squared_error(value: Tensor, loc: Tensor, event_dim: int, observed: Tensor | None = None) -> Tensor:
    """`‖value - loc‖²` over the last `event_dim` dimensions; the others broadcast.

    Args:
        value: `[*b, *event]`.
        loc: `[*c, *event]`.
        event_dim: Number of event dimensions.
        observed: Bool, which elements count; None: all. The others get no gradient, whatever their value.

    Returns:
        The broadcast of `[*b]` and `[*c]`.
    """
    residual = loc - value
    if observed is not None:
        residual = torch.where(observed, residual, 0.0)
    return _SumOfSquares.apply(residual, event_dim)


def linear_squared_error(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    """`‖hidden @ weight.T + bias - target‖²` of every row, `[n]`: a linear layer fused with its squared error.

    Args:
        hidden: `[n, H]`.
        weight: `[D, H]`.
        bias: `[D]`.
        target: `[n, D]`.
    """
    return _LinearSquaredError.apply(hidden, weight, bias, target)


class _SumOfSquares(Function):
    @staticmethod
    def forward(ctx: Any, residual: Tensor, event_dim: int) -> Tensor:
        ctx.event_dim = event_dim
        ctx.save_for_backward(residual)
        return _sum_of_squares(residual, event_dim)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (residual,) = ctx.saved_tensors
        twice = 2 * grad_outputs[0]
        return twice.reshape(twice.shape + (1,) * ctx.event_dim) * residual, None


class _LinearSquaredError(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
        residual = (bias - target).addmm_(hidden, weight.T)
        ctx.save_for_backward(hidden, weight, bias, target, residual)
        return _sum_of_squares(residual, 1)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, target, residual = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives, the residual as a function of the inputs
            residual = torch.addmm(bias, hidden, weight.T) - target
        twice = 2 * grad_outputs[0].unsqueeze(-1)
        needs_hidden, needs_weight, needs_bias, needs_target = ctx.needs_input_grad
        return (
            twice * (residual @ weight) if needs_hidden else None,
            residual.T @ (twice * hidden) if needs_weight else None,
            residual.T @ twice.squeeze(-1) if needs_bias else None,
            -twice * residual if needs_target else None,
        )


def _sum_of_squares(residual: Tensor, event_dim: int) -> Tensor:
    """One pass over the residual and nothing of its size; `square().sum()` takes two passes and a copy."""
    if event_dim == 0:
        return residual.square()
    return torch.linalg.vector_norm(residual, dim=tuple(range(-event_dim, 0))).square_()
