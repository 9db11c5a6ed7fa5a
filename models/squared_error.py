"""Squared errors of Gaussian likelihoods, each with one array of the size of the data saved for its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from models.stacked import in_front, stacked_linear_squared_error

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
    error: Tensor = _LinearSquaredError.apply(hidden, weight, bias, target)[0]
    return error


class _SumOfSquares(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(residual: Tensor, event_dim: int) -> Tensor:
        return _sum_of_squares(residual, event_dim)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        residual, ctx.event_dim = inputs
        ctx.save_for_backward(residual)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (residual,) = ctx.saved_tensors
        twice = 2 * grad_outputs[0]
        return twice.reshape(twice.shape + (1,) * ctx.event_dim) * residual, None


class _LinearSquaredError(Function):
    """Returns the residual, too, which has no gradient: only inputs and outputs can be kept for the backward pass."""

    @staticmethod
    def forward(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        residual = (bias - target).addmm_(hidden, weight.T)
        return _sum_of_squares(residual, 1), residual

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs, output[1])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Any, Any]:
        error = stacked_linear_squared_error(*map(in_front, inputs, in_dims, [info.batch_size] * 4))
        return (error, error.new_empty(info.batch_size, 0)), (0, 0)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Tensor | None, ...]:
        if grad_outputs[0] is None:  # of a second derivative that nothing asks for
            return None, None, None, None
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
    return torch.linalg.vector_norm(residual, dim=tuple(range(-event_dim, 0))).square()
