"""The distributions: densities and every gradient against torch's own, shapes, expansion, moments of draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal
from torch.nn.functional import linear

from causalpima.models.distributions import ComponentNormal, IsotropicNormal, LinearNormal

EVENT = torch.Size((2, 3))
BATCHES: list[tuple[int, ...]] = [(), (1,), (5,), (4, 5)]


class Last(NamedTuple):
    """Everything that the fused last layer depends on."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor
    scale: Tensor
    value: Tensor


def last_layer(batch: tuple[int, ...] = (5,)) -> Last:
    parts = (torch.randn(*batch, 4), torch.randn(6, 4), torch.randn(6), torch.tensor(0.7), torch.randn(*batch, *EVENT))
    return Last(*(part.requires_grad_() for part in parts))


def fused(last: Last) -> LinearNormal:
    return LinearNormal(last.hidden, last.weight, last.bias, last.scale, EVENT)


def dense(last: Last) -> Independent:
    mean = linear(last.hidden, last.weight, last.bias).unflatten(-1, EVENT)
    return Independent(Normal(mean, last.scale), 2)


# The fused last layer


@pytest.mark.parametrize("batch", BATCHES)
def test_fused_density_and_every_gradient_are_those_of_the_dense_normal(batch: tuple[int, ...]) -> None:
    last = last_layer(batch)
    ours, theirs = fused(last).log_prob(last.value), dense(last).log_prob(last.value)
    assert ours.shape == batch
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    weight = torch.randn(batch)
    gradients = zip(torch.autograd.grad(ours, last, weight), torch.autograd.grad(theirs, last, weight), strict=True)
    for mine, reference in gradients:
        torch.testing.assert_close(mine, reference, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", Last._fields)
def test_fused_gradients_where_one_input_alone_needs_one(name: str) -> None:
    last = Last(*(part.detach() for part in last_layer()))
    leaf = getattr(last, name).requires_grad_()
    (ours,) = torch.autograd.grad(fused(last).log_prob(last.value).sum(), leaf)
    (theirs,) = torch.autograd.grad(dense(last).log_prob(last.value).sum(), leaf)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_the_saved_residual_can_be_used_twice() -> None:
    last = last_layer()
    log_prob = fused(last).log_prob(last.value)
    first = torch.autograd.grad(log_prob.sum(), last, retain_graph=True)
    kept = [gradient.clone() for gradient in first]
    second = torch.autograd.grad(log_prob.sum(), last)
    for before, still, again in zip(kept, first, second, strict=True):
        assert torch.equal(before, still)
        assert torch.equal(before, again)


def test_two_densities_from_one_distribution_do_not_disturb_each_other() -> None:
    last = last_layer()
    distribution, other = fused(last), torch.randn(5, *EVENT)
    both = distribution.log_prob(last.value) + 2 * distribution.log_prob(other)
    reference = dense(last).log_prob(last.value) + 2 * dense(last).log_prob(other)
    weight = torch.randn(5)
    ours, theirs = (torch.autograd.grad(value, last, weight) for value in (both, reference))
    for mine, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-10, atol=1e-10)


def test_second_derivatives_are_those_of_the_last_layer() -> None:
    last, seconds = last_layer(), []
    for make in (fused, dense):
        (gradient,) = torch.autograd.grad(make(last).log_prob(last.value).sum(), last.hidden, create_graph=True)
        seconds.append(torch.autograd.grad(gradient.square().sum(), last))
    for ours, theirs in zip(*seconds, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (3, 1), (3, 4, 5)])
def test_fused_density_of_values_with_other_batch_shapes(shape: tuple[int, ...]) -> None:
    last, value = last_layer(), torch.randn(*shape[:-1], 1 if shape[-1] == 1 else 5, *EVENT)
    ours = fused(last).log_prob(value)
    torch.testing.assert_close(ours, dense(last).log_prob(value), rtol=1e-12, atol=1e-12)


def test_fused_mean_is_the_last_layer() -> None:
    last = last_layer((4, 5))
    assert fused(last).batch_shape == (4, 5)
    torch.testing.assert_close(fused(last).mean, linear(last.hidden, last.weight, last.bias).reshape(4, 5, 2, 3))


@pytest.mark.float32
def test_fused_density_in_float32() -> None:
    last = last_layer()
    torch.testing.assert_close(fused(last).log_prob(last.value), dense(last).log_prob(last.value))


# One scale for all elements


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("event", [(), (6,), (2, 3), (2, 3, 1)])
def test_isotropic_density_and_gradients(batch: tuple[int, ...], event: tuple[int, ...]) -> None:
    leaves = [torch.randn((*batch, *event)).requires_grad_(), torch.tensor(0.3).requires_grad_()]
    value, weight = torch.randn((*batch, *event)), torch.randn(batch)
    ours = IsotropicNormal(leaves[0], leaves[1], len(event)).log_prob(value)
    theirs = Independent(Normal(leaves[0], leaves[1]), len(event)).log_prob(value)
    assert ours.shape == batch
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    gradients = (torch.autograd.grad(log_prob, leaves, weight) for log_prob in (ours, theirs))
    for mine, their in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, their, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shape", [(5,), (4, 5), (4, 1), (1,)])
def test_isotropic_scale_per_sample_and_per_cell(shape: tuple[int, ...]) -> None:
    loc, scale, value = torch.randn(4, 5, 2, 3), 0.2 + torch.rand(shape), torch.randn(5, 2, 3)
    ours = IsotropicNormal(loc, scale, 2)
    reference = Independent(Normal(loc, scale.reshape(*shape, 1, 1)), 2)
    assert ours.batch_shape == (4, 5)
    torch.testing.assert_close(ours.log_prob(value), reference.log_prob(value), rtol=1e-12, atol=1e-12)
    torch.manual_seed(4)
    draw = ours.rsample((3,))
    torch.manual_seed(4)
    assert torch.equal(draw, loc + scale.reshape(*shape, 1, 1) * torch.randn(3, 4, 5, 2, 3))


# Components of the mixture


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("batch", BATCHES)
def test_component_density(batch: tuple[int, ...], full: bool) -> None:
    loc, scale, value = torch.randn(*batch, 3), 0.3 + torch.rand(*batch, 3), torch.randn(*batch, 3)
    tril = torch.diag_embed(scale) + (torch.tril(torch.randn(*batch, 3, 3), -1) if full else 0)
    ours = ComponentNormal(loc, tril if full else scale)
    assert ours.batch_shape == batch
    torch.testing.assert_close(ours.log_prob(value), MultivariateNormal(loc, scale_tril=tril).log_prob(value))


# All of them


def component(full: bool) -> Callable[[], ComponentNormal]:
    def build() -> ComponentNormal:
        scale = 0.3 + torch.rand(5, 3)
        return ComponentNormal(
            torch.randn(5, 3), torch.diag_embed(scale) + torch.ones(3, 3).tril(-1) if full else scale
        )

    return build


CONSTRUCTORS = {
    "diagonal component": component(full=False),
    "full component": component(full=True),
    "isotropic": lambda: IsotropicNormal(torch.randn(5, 2, 3), torch.tensor(0.7), 2),
    "isotropic, scale per sample": lambda: IsotropicNormal(torch.randn(5, 2, 3), 0.2 + torch.rand(5), 2),
    "fused": lambda: fused(Last(*(part.detach() for part in last_layer()))),
}
each = pytest.mark.parametrize("build", CONSTRUCTORS.values(), ids=CONSTRUCTORS.keys())

Build = Callable[[], ComponentNormal | IsotropicNormal | LinearNormal]


@each
def test_expansion_changes_the_shape_and_not_the_density(build: Build) -> None:
    distribution = build()
    value = torch.randn(4, 5, *distribution.event_shape)
    expanded = distribution.expand(torch.Size((4, 5)))
    assert (expanded.batch_shape, expanded.event_shape) == ((4, 5), distribution.event_shape)
    torch.testing.assert_close(expanded.log_prob(value), distribution.log_prob(value))
    assert expanded.log_prob(value[0]).shape == (4, 5)
    torch.testing.assert_close(expanded.mean, distribution.mean.expand(4, 5, *distribution.event_shape))
    same = distribution.expand(distribution.batch_shape)
    torch.testing.assert_close(same.log_prob(value[0]), distribution.log_prob(value[0]), rtol=0, atol=0)


@each
def test_draws_have_shape_and_seed(build: Build) -> None:
    distribution = build()
    expanded = distribution.expand(torch.Size((4, 5)))
    torch.manual_seed(3)
    first = expanded.rsample(torch.Size((2,)))
    torch.manual_seed(3)
    assert torch.equal(first, expanded.rsample(torch.Size((2,))))
    assert first.shape == (2, 4, 5, *distribution.event_shape)
    assert first.unique().numel() == first.numel(), "every element is a draw of its own"


@each
def test_moments_of_draws(build: Build) -> None:
    distribution, n = build(), 4000
    draws = distribution.rsample(torch.Size((n,))).flatten(2)
    error = draws - distribution.mean.flatten(1)
    spread = error.std(0)
    assert (error.mean(0).abs() < 5 * spread / n**0.5).all()
    entropy, log_prob = draws.shape[-1] / 2, distribution.log_prob(draws.unflatten(-1, distribution.event_shape))
    at_mean = distribution.log_prob(distribution.mean)
    surprise = at_mean - log_prob.mean(0)
    assert ((surprise - entropy).abs() < 5 * (entropy / n) ** 0.5).all(), "E[½ x² / σ²] = D / 2"


@each
def test_draws_carry_gradients(build: Build) -> None:
    distribution = build()
    leaf = distribution.hidden if isinstance(distribution, LinearNormal) else distribution.loc
    leaf.requires_grad_()
    (gradient,) = torch.autograd.grad(distribution.rsample().sum(), leaf)
    assert (gradient != 0).all()


@each
def test_support_is_real_over_the_event(build: Build) -> None:
    distribution = build()
    value = distribution.rsample()
    assert distribution.support.check(value).shape == (5,)
    assert distribution.support.event_dim == len(distribution.event_shape)
