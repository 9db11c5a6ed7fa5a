"""Laws of `Elementwise` for every univariate distribution that stands behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pyro.distributions as dist
import pytest
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from causalpima.models.distributions import Elementwise, MeanNegativeBinomial

B, EVENT, K = 4, (3, 2), 5


class Kind(NamedTuple):
    """How a distribution of every element is made from unconstrained parameters, and its moments by definition."""

    n_parameters: int
    make: Callable[..., TorchDistribution]
    outside: float


KINDS = {
    "normal": Kind(2, lambda a, b: dist.Normal(a, b.exp()), torch.inf),
    "Student t": Kind(2, lambda a, b: dist.StudentT(4.0, a, b.exp()), torch.inf),
    "log normal": Kind(2, lambda a, b: dist.LogNormal(a, b.exp()), -1.0),
    "gamma": Kind(2, lambda a, b: dist.Gamma(a.exp(), b.exp()), -1.0),
    "beta": Kind(2, lambda a, b: dist.Beta(a.exp(), b.exp()), 1.5),
    "Kumaraswamy": Kind(2, lambda a, b: dist.Kumaraswamy(a.exp(), b.exp()), 1.5),
    "from 3 on": Kind(1, lambda a: dist.Pareto(torch.tensor(3.0), 1.5 + a.exp()), 2.0),
    "Bernoulli": Kind(1, lambda a: dist.Bernoulli(logits=a), 0.5),
    "Poisson": Kind(1, lambda a: dist.Poisson(a.exp()), -1.0),
    "negative binomial": Kind(2, lambda a, b: MeanNegativeBinomial(a, b.exp()), -1.0),
    "categorical": Kind(K, lambda *a: dist.Categorical(logits=torch.stack(a, -1)), 99.0),
}
every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def build(kind: Kind, *batch: int) -> tuple[Elementwise, list[Tensor]]:
    """The distribution, and its parameters as leaves."""
    leaves = [torch.randn(*batch, *EVENT, requires_grad=True) for _ in range(kind.n_parameters)]
    with torch.no_grad():
        kind.make(*leaves)  # with validation
    return Elementwise(kind.make(*leaves), len(EVENT), validate_args=False), leaves


def gradients(log_prob: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(log_prob.sum(), leaves, retain_graph=True))


def gaps() -> Tensor:
    observed = torch.rand(B, *EVENT) < 0.6
    observed[0], observed[1] = True, False
    return observed


@every
def test_log_density_is_the_sum_over_elements(kind: Kind) -> None:
    distribution, _ = build(kind, B)
    value = distribution.sample()
    assert distribution.batch_shape == (B,)
    assert distribution.event_shape == EVENT
    expected = torch.stack([distribution.base.log_prob(value)[row].sum() for row in range(B)])
    torch.testing.assert_close(distribution.log_prob(value), expected)
    assert distribution.support.check(value).shape == (B,)
    assert distribution.support.check(value).all()


@every
def test_restricted_drops_the_other_elements(kind: Kind) -> None:
    distribution, leaves = build(kind, B)
    value, observed = distribution.sample(), gaps()
    restricted = distribution.restricted(observed).log_prob(value)
    each = distribution.base.log_prob(value)
    for row in range(B):
        torch.testing.assert_close(restricted[row], each[row][observed[row]].sum())
    assert restricted[1] == 0, "nothing measured"
    torch.testing.assert_close(restricted[0], distribution.log_prob(value)[0])
    by_hand = gradients(each[observed], leaves)
    torch.testing.assert_close(gradients(restricted, leaves), by_hand)


@every
@pytest.mark.parametrize("filler", ["nan", "infinite", "outside"])
def test_filler_touches_neither_value_nor_gradient(kind: Kind, filler: str) -> None:
    distribution, leaves = build(kind, B)
    value, observed = distribution.sample(), gaps()
    bad = {"nan": torch.nan, "infinite": torch.inf, "outside": kind.outside}[filler]
    spoilt = torch.where(observed, value, bad)
    restricted = distribution.restricted(observed)
    expected, actual = restricted.log_prob(value), restricted.log_prob(spoilt)
    assert torch.equal(actual, expected)
    for before, after in zip(gradients(expected, leaves), gradients(actual, leaves), strict=True):
        assert torch.equal(after, before)
        assert (after[~observed] == 0).all()
        assert after.isfinite().all()


@every
def test_gaps_broadcast_over_enumerated_cells(kind: Kind) -> None:
    distribution, _ = build(kind, 3, B)
    value, observed = distribution.sample()[0], gaps()
    together = distribution.restricted(observed).log_prob(value)
    assert together.shape == (3, B)
    each = distribution.base.log_prob(value)
    torch.testing.assert_close(together, torch.where(observed, each, 0.0).sum((-1, -2)))


@every
def test_expand_keeps_density_and_gaps(kind: Kind) -> None:
    distribution, _ = build(kind, 1)
    value, observed = distribution.sample((B,))[:, 0], gaps()
    for one in (distribution, distribution.restricted(observed)):
        wide = one.expand((B,))
        assert wide.batch_shape == (B,)
        torch.testing.assert_close(wide.log_prob(value), one.log_prob(value))
    assert wide.sample().shape == (B, *EVENT)


@every
def test_draws_have_the_moments(kind: Kind) -> None:
    distribution, _ = build(kind, 1)
    n = 20_000
    draws = distribution.sample((n,))
    assert draws.dtype == torch.get_default_dtype()
    assert not draws.requires_grad
    seen = draws
    if kind is KINDS["categorical"]:
        seen = torch.nn.functional.one_hot(draws.long(), K).to(draws)
    assert distribution.mean.shape == distribution.variance.shape == seen.shape[1:]
    if distribution.variance.isfinite().all() and kind not in (KINDS["log normal"], KINDS["from 3 on"]):
        error = (seen.mean(0) - distribution.mean).abs() / (distribution.variance / n).sqrt()
        assert (error < 5).all()
        spread = ((seen - distribution.mean) ** 2).mean(0) / distribution.variance
        allowed = 0.6 if kind is KINDS["Student t"] else 0.25
        assert ((spread - 1).abs() < allowed).all(), "a fourth moment that is infinite, or heavy"


@every
def test_reparametrised_draws_where_the_base_has_them(kind: Kind) -> None:
    distribution, leaves = build(kind, B)
    assert distribution.has_rsample == distribution.base.has_rsample
    if distribution.has_rsample:
        assert distribution.rsample((2,)).shape == (2, B, *EVENT)
        assert distribution.rsample().requires_grad
    assert leaves[0].grad is None


def test_single_numbers_have_no_event_dimension() -> None:
    distribution = Elementwise(dist.Poisson(torch.tensor([1.0, 2.0])), 0)
    value, observed = torch.tensor([3.0, torch.nan]), torch.tensor([True, False])
    assert distribution.batch_shape == (2,)
    actual = distribution.restricted(observed).log_prob(value)
    torch.testing.assert_close(actual, torch.tensor([3 * 0.0 - 1.0 - torch.tensor(6.0).log().item(), 0.0]))


def test_a_gap_that_is_not_replaced_would_be_seen() -> None:
    """The control: without the replacement the gradient is NaN, not zero."""
    logit = torch.tensor([0.3, 0.4], requires_grad=True)
    value, observed = torch.tensor([1.0, torch.nan]), torch.tensor([True, False])
    log_prob = dist.Bernoulli(logits=logit, validate_args=False).log_prob(value)
    (gradient,) = torch.autograd.grad(torch.where(observed, log_prob, 0.0).sum(), logit)
    assert gradient[1].isnan()
