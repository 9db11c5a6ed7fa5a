"""Linear layers of several networks at once: what `torch.vmap` is told about them.

Networks of the same shape that see the same samples are evaluated as one by `torch.vmap` over their stacked weights.
Its own rule for a linear layer copies weights and gradients; these write each gradient once, where it belongs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

__all__ = [
    "StackableLinear",
    "in_front",
    "stacked_linear",
    "stacked_linear_squared_error",
    "with_stackable_layers",
]


def stacked_linear(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`hidden_k @ weight_k.T + bias_k` for every k, `[K, n, O]`.

    Args:
        hidden: `[K, n, H]`.
        weight: `[K, O, H]`.
        bias: `[K, O]`.
    """
    return _StackedLinear.apply(hidden, weight, bias)


def stacked_linear_squared_error(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    """`‖hidden_k @ weight_k.T + bias_k - target_k‖²` of every row for every k, `[K, n]`.

    Args:
        hidden: `[K, n, H]`.
        weight: `[K, D, H]`.
        bias: `[K, D]`.
        target: `[K, n, D]`; may be an expanded view.
    """
    return _StackedLinearSquaredError.apply(hidden, weight, bias, target)


def in_front(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    """The tensor with its stacked dimension first, an expanded view where it has none.

    Args:
        tensor: As `torch.vmap` hands it to a rule.
        dim: Where its stacked dimension is; None: the same for all.
        size: K.
    """
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


class StackableLinear(nn.Linear):
    """`nn.Linear` that `torch.vmap` over its weights evaluates by `stacked_linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """As `nn.Linear`."""
        rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])  # there may be none
        outputs: Tensor = _Linear.apply(rows, self.weight, self.bias)
        return outputs.reshape(*input.shape[:-1], self.out_features)


def with_stackable_layers(module: nn.Module) -> nn.Module:
    """Put a `StackableLinear` with the same parameters in the place of every linear layer that has a bias.

    Args:
        module: Changed in place, and returned.
    """
    for name, child in list(module.named_children()):
        if type(child) is nn.Linear and child.bias is not None:
            setattr(module, name, _like(child))
        else:
            with_stackable_layers(child)
    return module


def _like(layer: nn.Linear) -> StackableLinear:
    made = StackableLinear(layer.in_features, layer.out_features, device="meta")
    made.weight, made.bias = layer.weight, layer.bias
    return made


class _Linear(Function):
    @staticmethod
    def forward(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.addmm(bias, hidden, weight.T)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, ...]:
        hidden, weight = ctx.saved_tensors
        (grad,) = grad_outputs
        return grad @ weight, grad.T @ hidden, grad.sum(0)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Tensor, int]:
        return stacked_linear(*map(in_front, inputs, in_dims, [info.batch_size] * 3)), 0


class _StackedLinear(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(hidden, weight)
        return torch.baddbmm(bias.unsqueeze(1), hidden, weight.mT)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight = ctx.saved_tensors
        (grad,) = grad_outputs
        return torch.bmm(grad, weight) if ctx.needs_input_grad[0] else None, torch.bmm(grad.mT, hidden), grad.sum(1)


class _StackedLinearSquaredError(Function):
    """One network after the other, since a residual that stays in the cache is worth more than one large product."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
        residual = target.new_empty(target.shape)
        error = target.new_empty(target.shape[:2])
        for k, place in enumerate(residual):
            torch.sub(bias[k], target[k], out=place).addmm_(hidden[k], weight[k].T)
            error[k] = torch.linalg.vector_norm(place, dim=-1).square_()
        ctx.save_for_backward(hidden, weight, residual)
        return error

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, residual = ctx.saved_tensors
        twice = 2 * grad_outputs[0].unsqueeze(-1)
        weighted = twice * hidden
        grads = torch.empty_like(hidden), torch.empty_like(weight), weight.new_empty(weight.shape[:2])
        for k, place in enumerate(residual):
            torch.mm(place, weight[k], out=grads[0][k])
            torch.mm(place.T, weighted[k], out=grads[1][k])
            torch.mv(place.T, twice[k].squeeze(-1), out=grads[2][k])
        return grads[0].mul_(twice), *grads[1:], -twice * residual if ctx.needs_input_grad[3] else None
