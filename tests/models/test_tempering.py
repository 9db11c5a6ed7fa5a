"""Likelihoods raised to a power: the density, and nothing but the density."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from causalpima.models.distributions import IsotropicNormal, LinearNormal
from causalpima.models.tempering import Tempered, tempered


def base(batch: tuple[int, ...] = (5,)) -> IsotropicNormal:
    return IsotropicNormal(torch.randn(*batch, 3).requires_grad_(), torch.tensor(0.7, requires_grad=True), 1)


def test_a_weight_of_one_changes_nothing_at_all() -> None:
    distribution = base()
    assert tempered(distribution, 1.0) is distribution


@pytest.mark.parametrize("weight", [0.25, 3.0])
def test_density_and_every_gradient_are_multiplied(weight: float) -> None:
    distribution, value = base(), torch.randn(5, 3).requires_grad_()
    leaves = (distribution.loc, distribution.scale, value)
    ours, plain = tempered(distribution, weight).log_prob(value), distribution.log_prob(value)
    torch.testing.assert_close(ours, weight * plain, rtol=0, atol=0)
    expected = [weight * gradient for gradient in torch.autograd.grad(plain.sum(), leaves)]
    torch.testing.assert_close(list(torch.autograd.grad(ours.sum(), leaves)), expected, rtol=1e-12, atol=1e-12)


def test_draws_moments_shapes_and_support_are_those_of_the_base() -> None:
    distribution = base()
    ours = tempered(distribution, 4.0)
    assert (ours.batch_shape, ours.event_shape, ours.has_rsample) == (torch.Size([5]), torch.Size([3]), True)
    assert ours.mean is distribution.loc
    assert ours.support.event_dim == 1
    draws: list[Tensor] = []
    for which in (ours, distribution):
        torch.manual_seed(3)
        draws += [which.sample((2,)), which.rsample((2,))]
    torch.testing.assert_close(draws[:2], draws[2:], rtol=0, atol=0)
    assert draws[1].requires_grad


def test_expanded_it_keeps_its_weight() -> None:
    value = torch.randn(4, 5, 3)
    ours = tempered(base(), 2.0)
    expanded = ours.expand((4, 5))
    assert isinstance(expanded, Tempered)
    assert expanded.batch_shape == (4, 5)
    torch.testing.assert_close(expanded.log_prob(value), ours.log_prob(value))


def test_around_the_fused_last_layer() -> None:
    parts = torch.randn(5, 4), torch.randn(3, 4), torch.randn(3), torch.tensor(0.6)
    value, fused = torch.randn(5, 3), LinearNormal(*parts, torch.Size([3]))
    torch.testing.assert_close(tempered(fused, 0.5).log_prob(value), 0.5 * fused.log_prob(value))
