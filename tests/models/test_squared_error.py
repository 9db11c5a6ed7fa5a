"""Squared errors against the plain expression: values, first and second derivatives, broadcasting, memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from causalpima.models.gaussian import linear_squared_error, squared_error


def plain(value: Tensor, loc: Tensor, event_dim: int) -> Tensor:
    squares = (value - loc) ** 2
    return squares.sum(tuple(range(-event_dim, 0))) if event_dim else squares


def plain_linear(hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    return ((hidden @ weight.T + bias - target) ** 2).sum(-1)


def leaves(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.randn(shape).requires_grad_() for shape in shapes]


def assert_same_gradients(ours: Tensor, reference: Tensor, inputs: list[Tensor]) -> None:
    torch.testing.assert_close(ours, reference, rtol=1e-12, atol=1e-12)
    weights = torch.randn_like(reference)
    wanted = torch.autograd.grad(reference, inputs, weights)
    torch.testing.assert_close(torch.autograd.grad(ours, inputs, weights), wanted, rtol=1e-12, atol=1e-12)


@given(st.lists(st.integers(1, 3), max_size=3), st.integers(0, 2), st.booleans())
def test_squared_error_is_the_plain_one(event: list[int], outer: int, per_cell: bool) -> None:
    batch = (4, 3)[:outer]
    value, loc = leaves((*batch, *event), ((5,) if per_cell else ()) + (*batch, *event))
    assert_same_gradients(squared_error(value, loc, len(event)), plain(value, loc, len(event)), [value, loc])


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 6))
def test_linear_squared_error_is_the_plain_one(n: int, n_hidden: int, n_elements: int) -> None:
    inputs = leaves((n, n_hidden), (n_elements, n_hidden), (n_elements,), (n, n_elements))
    assert_same_gradients(linear_squared_error(*inputs), plain_linear(*inputs), inputs)


def test_second_derivatives() -> None:
    value, loc = leaves((3, 2, 2), (4, 3, 2, 2))
    inputs = leaves((3, 2), (4, 2), (4,), (3, 4))
    for check in (gradcheck, gradgradcheck):
        assert check(lambda v, m: squared_error(v, m, 2), (value, loc))
        assert check(linear_squared_error, inputs)


def test_an_error_of_zero_has_a_gradient_of_zero() -> None:
    (loc,) = leaves((3, 4))
    squared_error(loc.detach(), loc, 1).sum().backward()
    assert loc.grad is not None
    assert (loc.grad == 0).all()


def saved_elements(result: Tensor) -> int:
    """Number of elements that the graph behind a result keeps for the backward pass, inputs included."""
    tensors: dict[int, int] = {}
    nodes = [result.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None:
            tensors |= {tensor.data_ptr(): tensor.numel() for tensor in getattr(node, "saved_tensors", ())}
            nodes += [parent for parent, _ in node.next_functions]
    return sum(tensors.values())


@pytest.mark.parametrize("n_cells", [1, 8])
def test_one_residual_is_saved(n_cells: int) -> None:
    value, loc = torch.randn(5, 100), torch.randn(n_cells, 5, 100, requires_grad=True)
    assert saved_elements(squared_error(value, loc * 1.0, 1)) == loc.numel()


# Elements that were not measured


def test_elements_left_out_are_as_if_they_were_not_there() -> None:
    value, loc = leaves((4, 6), (5, 4, 6))
    observed = torch.rand(4, 6) < 0.5
    observed[0] = False
    by_hand = torch.stack([((value - loc)[:, row][:, observed[row]] ** 2).sum(-1) for row in range(4)], dim=-1)
    assert_same_gradients(squared_error(value, loc, 1, observed), by_hand, [value, loc])


@pytest.mark.parametrize("filler", [0.0, 1e30, float("inf"), float("nan")])
def test_elements_left_out_get_a_gradient_of_exactly_zero(filler: float) -> None:
    observed = torch.rand(4, 2, 3) < 0.5
    value = torch.where(observed, torch.randn(4, 2, 3), filler).requires_grad_()
    (loc,) = leaves((4, 2, 3))
    error = squared_error(value, loc, 2, observed)
    assert error.isfinite().all()
    for gradient in torch.autograd.grad(error.sum(), (value, loc)):
        assert (gradient[~observed] == 0).all()
        assert (gradient[observed] != 0).all()


def test_second_derivatives_with_elements_left_out() -> None:
    value, loc = leaves((3, 2, 2), (4, 3, 2, 2))
    observed = torch.rand(3, 2, 2) < 0.6
    for check in (gradcheck, gradgradcheck):
        assert check(lambda v, m: squared_error(v, m, 2, observed), (value, loc))
