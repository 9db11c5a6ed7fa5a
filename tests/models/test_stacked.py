"""Stacks of linear layers under `torch.vmap`: values and gradients are those of one network after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.gaussian import linear_squared_error, squared_error
from causalpima.models.parallel import StackableLinear, in_front, with_stackable_layers

K, N, H, D = 3, 5, 4, 6


def random(*shape: int) -> Tensor:
    return torch.randn(*shape).requires_grad_()


def one_by_one(function: Callable[..., Tensor], in_dims: Sequence[int | None], inputs: Sequence[Tensor]) -> Tensor:
    """The dense reference."""
    rows = [[t if d is None else t.select(d, k) for t, d in zip(inputs, in_dims, strict=True)] for k in range(K)]
    return torch.stack([function(*row) for row in rows])


def assert_same(function: Callable[..., Tensor], in_dims: tuple[int | None, ...], inputs: Sequence[Tensor]) -> None:
    ours, theirs = vmap(function, in_dims)(*inputs), one_by_one(function, in_dims, inputs)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(theirs)
    gradients = [torch.autograd.grad((value * weights).sum(), inputs) for value in (ours, theirs)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rows", [N, 0])
@pytest.mark.parametrize("in_dims", [(0, 0, 0), (None, 0, 0), (1, 0, 0)])
def test_linear_layers(in_dims: tuple[int | None, ...], rows: int) -> None:
    layer = StackableLinear(H, D)

    def evaluate(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional_call(layer, {"weight": weight, "bias": bias}, (hidden,))

    hidden = {0: random(K, rows, H), None: random(rows, H), 1: random(rows, K, H)}[in_dims[0]]
    assert_same(evaluate, in_dims, (hidden, random(K, D, H), random(K, D)))


def test_linear_layers_of_more_batch_dimensions() -> None:
    layer = StackableLinear(H, D)

    def evaluate(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional_call(layer, {"weight": weight, "bias": bias}, (hidden,))

    assert_same(evaluate, (0, 0, 0), (random(K, 2, N, H), random(K, D, H), random(K, D)))


def test_a_layer_on_its_own_is_a_linear_layer() -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(H, D), nn.ReLU(), nn.Sequential(nn.Linear(D, 2), nn.Linear(2, 2, bias=False)))
    hidden = random(2, N, H)
    expected = plain(hidden)
    parameters = list(plain.parameters())
    gradients = torch.autograd.grad(expected.square().sum(), [hidden, *parameters])
    assert with_stackable_layers(plain) is plain
    kinds = [type(module) for module in plain.modules() if isinstance(module, nn.Linear)]
    assert kinds == [StackableLinear, StackableLinear, nn.Linear]
    assert all(p is q for p, q in zip(plain.parameters(), parameters, strict=True))
    ours = plain(hidden)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(torch.autograd.grad(ours.square().sum(), [hidden, *parameters]), gradients)


@pytest.mark.parametrize("in_dims", [(0, 0, 0, None), (0, 0, 0, 0), (1, 0, 0, 1), (None, 0, 0, None)])
def test_linear_squared_errors(in_dims: tuple[int | None, ...]) -> None:
    def placed(dim: int | None, *shape: int) -> Tensor:
        return random(*shape) if dim is None else random(K, *shape).movedim(0, dim).detach().requires_grad_()

    inputs = placed(in_dims[0], N, H), random(K, D, H), random(K, D), placed(in_dims[3], N, D)
    assert_same(linear_squared_error, in_dims, inputs)


@pytest.mark.parametrize("masked", [False, True])
def test_squared_errors(masked: bool) -> None:
    observed = torch.rand(N, D) > 0.3 if masked else None
    assert_same(lambda value, loc: squared_error(value, loc, 1, observed), (None, 0), (random(N, D), random(K, N, D)))


def test_floors_of_learned_variances() -> None:
    variance = DecoderVariance("learned", 1.0, floor=0.5)

    def evaluate(log_variance: Tensor) -> Tensor:
        return functional_call(_Training(variance), {"variance.log_variance": log_variance}, ())

    assert_same(evaluate, (0,), (torch.tensor([-2.0, -0.1, 3.0], requires_grad=True),))


class _Training(nn.Module):
    def __init__(self, variance: DecoderVariance) -> None:
        super().__init__()
        self.variance = variance

    def forward(self) -> Tensor:
        return self.variance.training_variance()


def test_what_is_the_same_for_all_is_not_copied() -> None:
    value = torch.randn(N, D)
    assert in_front(value, None, K).data_ptr() == value.data_ptr()
    assert in_front(torch.randn(N, K, D), 1, K).shape == (K, N, D)
