"""Gaussian likelihoods of the measured elements alone, against dropping the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from causalpima.models.distributions import ElementDistribution, IsotropicNormal, LinearNormal

N, EVENT = 5, torch.Size((2, 3))


def isotropic() -> tuple[ElementDistribution, list[Tensor]]:
    """The distribution of a batch and the leaves that it depends on."""
    loc, scale = torch.randn(N, *EVENT).requires_grad_(), torch.tensor(0.7, requires_grad=True)
    return IsotropicNormal(loc, scale, 2), [loc, scale]


def linear() -> tuple[ElementDistribution, list[Tensor]]:
    hidden, weight, bias = (torch.randn(shape).requires_grad_() for shape in [(N, 4), (6, 4), (6,)])
    scale = torch.tensor(0.7, requires_grad=True)
    return LinearNormal(hidden, weight, bias, scale, EVENT), [hidden, weight, bias, scale]


def mask() -> Tensor:
    """Some of the elements; none of the first sample, all of the second."""
    observed = torch.rand(N, *EVENT) < 0.5
    observed[0], observed[1] = False, True
    return observed


both = pytest.mark.parametrize("make", [isotropic, linear])
Make = Callable[[], tuple[ElementDistribution, list[Tensor]]]


@both
def test_density_and_every_gradient_are_those_of_the_elements_that_are_left(make: Make) -> None:
    (distribution, leaves), observed, value = make(), mask(), torch.randn(N, *EVENT)
    dense = Normal(distribution.mean, leaves[-1])
    by_hand = torch.stack([dense.log_prob(value)[row][observed[row]].sum() for row in range(N)])
    ours = distribution.restricted(observed).log_prob(value)
    torch.testing.assert_close(ours, by_hand, rtol=1e-12, atol=1e-12)
    assert ours[0] == 0, "without elements there is nothing to say"
    weight = torch.randn(N)
    expected = torch.autograd.grad(by_hand, leaves, weight)
    torch.testing.assert_close(torch.autograd.grad(ours, leaves, weight), expected, rtol=1e-10, atol=1e-10)


@both
@pytest.mark.parametrize("filler", [0.0, -1e30, float("nan")])
def test_filler_changes_nothing(make: Make, filler: float) -> None:
    (distribution, leaves), observed = make(), mask()
    value = torch.randn(N, *EVENT)
    found = []
    for filled in (value, torch.where(observed, value, filler)):
        filled = filled.clone().requires_grad_()
        log_prob = distribution.restricted(observed).log_prob(filled)
        *gradients, of_value = torch.autograd.grad(log_prob.sum(), [*leaves, filled], retain_graph=True)
        assert (of_value[~observed] == 0).all()
        found.append([log_prob, *gradients])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


@both
def test_all_elements_measured_is_the_distribution_itself(make: Make) -> None:
    (distribution, _), value = make(), torch.randn(N, *EVENT)
    whole = distribution.restricted(torch.ones(N, *EVENT, dtype=torch.bool))
    torch.testing.assert_close(whole.log_prob(value), distribution.log_prob(value), rtol=1e-12, atol=1e-12)


@both
def test_draws_and_mean_are_of_all_elements(make: Make) -> None:
    distribution, _ = make()
    restricted = distribution.restricted(mask())
    torch.testing.assert_close(restricted.mean, distribution.mean)
    assert restricted.sample((3,)).shape == (3, N, *EVENT)


def test_a_mask_goes_along_when_cells_are_added_on_the_left() -> None:
    loc, observed, value = torch.randn(4, N, *EVENT), mask(), torch.randn(N, *EVENT)
    per_cell = IsotropicNormal(loc, torch.tensor(0.7), 2).restricted(observed)
    expected = (Normal(loc, 0.7).log_prob(value) * observed).flatten(2).sum(-1)
    torch.testing.assert_close(per_cell.log_prob(value), expected)
    one = IsotropicNormal(loc[0], torch.tensor(0.7), 2).restricted(observed)
    torch.testing.assert_close(one.expand((4, N)).log_prob(value), expected[:1].expand(4, N))


def test_scalars() -> None:
    loc, value, observed = torch.randn(N), torch.randn(N), torch.tensor([True, False, True, True, False])
    found = IsotropicNormal(loc, torch.tensor(0.7), 0).restricted(observed).log_prob(value)
    torch.testing.assert_close(found, Normal(loc, 0.7).log_prob(value) * observed)


def test_the_interface_alone_cannot_leave_out_elements() -> None:
    class Nothing(ElementDistribution):
        def __init__(self) -> None:
            super().__init__(torch.Size([N]), EVENT, validate_args=False)

    nothing: Any = Nothing()
    with pytest.raises(NotImplementedError):
        nothing.restricted(mask())
