"""Mixture updates: sums that add up, and maximisers."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from toy_mixtures import KINDS, MAPS, make_mixture, make_problem, normalised

from causalpima.inference.training.mixture_updates import MixtureSums, apply_update, log_prior, moments
from causalpima.models import gaussian
from causalpima.models.mixture import Covariance, GaussianMixture

kinds = pytest.mark.parametrize("kind", KINDS)
maps = pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())


@pytest.mark.parametrize("of_draws", [True, False])
def test_moments_are_the_sums_that_they_say(of_draws: bool) -> None:
    r, z, variance = torch.rand(5, 3), torch.randn(5, 2), torch.rand(5, 2)
    sums = moments(r, z, None if of_draws else variance)
    for k in range(3):
        count, first, second = torch.tensor(0.0), torch.zeros(2), torch.zeros(2, 2)
        for d in range(5):
            extra = torch.zeros(2, 2) if of_draws else torch.diag(variance[d])
            count = count + r[d, k]
            first = first + r[d, k] * z[d]
            second = second + r[d, k] * (torch.outer(z[d], z[d]) + extra)
        torch.testing.assert_close((sums.count[k], sums.first[k], sums.second[k]), (count, first, second))


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 30), max_size=4), of_draws=st.booleans())
def test_moments_add_up_over_batches(cuts: list[int], of_draws: bool) -> None:
    r, z = torch.rand(30, 4), torch.randn(30, 3)
    variance = None if of_draws else torch.rand(30, 3)
    whole = moments(r, z, variance)
    bounds = [0, *sorted(cuts), 30]
    total = MixtureSums(torch.zeros(4), torch.zeros(4, 3), torch.zeros(4, 3, 3))
    for start, end in itertools.pairwise(bounds):
        part = slice(start, end)
        total = total.plus(moments(r[part], z[part], None if variance is None else variance[part]))
    torch.testing.assert_close(total, whole, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------------------------- maximisers


def expected_objective(
    mixture: GaussianMixture, r: Tensor, loc: Tensor, q_scale: Tensor | None, pseudo_count: float
) -> Tensor:
    """Expected complete-data log-likelihood of the mixture, plus its log-prior."""
    log_density = mixture.log_density(loc) if q_scale is None else mixture.expected_log_density(loc, q_scale)
    return (r * (log_density + mixture.component_log_share)).sum() + log_prior(mixture, pseudo_count)


class Free(NamedTuple):
    """A mixture in the coordinates in which the objective is concave, given the means: precisions and logits."""

    loc: Tensor
    precision: Tensor
    logits: Tensor

    @classmethod
    def of(cls, mixture: GaussianMixture) -> Free:
        covariance = mixture.covariance()
        if mixture.covariance_kind == "diagonal":
            precision = 1 / covariance.diagonal(dim1=-2, dim2=-1)
        else:
            precision = torch.linalg.inv(covariance)
        return cls(
            *(x.clone().requires_grad_() for x in (mixture.component_loc, precision, mixture.component_log_share))
        )

    def build(self, like: GaussianMixture) -> GaussianMixture:
        if like.covariance_kind == "diagonal":
            scale = self.precision.rsqrt()
        else:
            scale = torch.linalg.cholesky(torch.linalg.inv((self.precision + self.precision.mT) / 2))
        mixture = GaussianMixture(like.n_cells, like.latent_dim, like.covariance_kind)
        mixture.replace(self.loc, scale, like.component_cell, normalised(self.logits, like.component_cell))
        return mixture


@kinds
@maps
@pytest.mark.parametrize("of_draws", [True, False])
@pytest.mark.parametrize("floored", ["none", "some", "all"])
def test_update_is_the_maximiser(cell: list[int], kind: Covariance, of_draws: bool, floored: str) -> None:
    """Stationary in means and shares; in precisions, which are bounded by the floor, the Karush-Kuhn-Tucker conditions.

    In a precision Λ the objective is concave and Λ ⪯ I / floor is a convex set, so the conditions are sufficient.
    """
    mixture, kappa = make_mixture(cell, kind), 0.7
    problem = make_problem(mixture.n_cells)
    r = torch.softmax(2.0 * torch.randn(12, len(cell)), -1)
    loc, q_scale = (problem.draw, None) if of_draws else (problem.q_loc, problem.q_scale)
    sums = moments(r, loc, None if q_scale is None else q_scale.square())
    apply_update(mixture, sums, kappa, 1e-9)
    variances = torch.linalg.eigvalsh(mixture.covariance())
    floor = float({"none": 0.5 * variances.min(), "some": variances.median(), "all": 2 * variances.max()}[floored])
    assert apply_update(mixture, sums, kappa, floor) == []
    free = Free.of(mixture)
    expected_objective(free.build(mixture), r, loc, q_scale, kappa).backward()
    assert free.loc.grad is not None
    assert free.logits.grad is not None
    assert free.precision.grad is not None
    torch.testing.assert_close(free.loc.grad, torch.zeros_like(free.loc), rtol=0, atol=1e-9)
    torch.testing.assert_close(free.logits.grad, torch.zeros_like(free.logits), rtol=0, atol=1e-9)
    multiplier, precision = free.precision.grad, free.precision.detach()
    if kind == "diagonal":
        multiplier, precision = torch.diag_embed(multiplier), torch.diag_embed(precision)
    slack = torch.eye(2) / floor - precision
    assert torch.linalg.eigvalsh(slack).min() > -1e-9, "no variance is below the floor"
    assert torch.linalg.eigvalsh(multiplier).min() > -1e-8, "at the floor, the objective asks for more precision"
    assert (multiplier @ slack).abs().max() < 1e-8, "away from the floor, it asks for nothing"
    active = int((torch.linalg.eigvalsh(slack) < 1e-9).sum())
    assert active == {"none": 0, "some": len(cell), "all": 2 * len(cell)}[floored]


@kinds
def test_no_mixture_nearby_or_far_is_better(kind: Covariance) -> None:
    mixture, kappa, floor = make_mixture(MAPS["several"], kind), 0.7, 1.5
    problem = make_problem(mixture.n_cells)
    r = torch.softmax(2.0 * torch.randn(12, 6), -1)
    apply_update(mixture, moments(r, problem.q_loc, problem.q_scale.square()), kappa, floor)
    best = expected_objective(mixture, r, problem.q_loc, problem.q_scale, kappa)
    for trial in range(40):
        distance = 10.0 ** -(trial % 5)
        other = make_mixture(MAPS["several"], kind)
        covariance = (1 - distance) * mixture.covariance() + distance * (other.covariance() + floor * torch.eye(2))
        log_share = mixture.component_log_share + distance * torch.randn(6)
        scale = torch.linalg.cholesky(covariance)
        other.replace(
            mixture.component_loc + distance * torch.randn(6, 2),
            scale if kind == "full" else covariance.diagonal(dim1=-2, dim2=-1).sqrt(),
            mixture.component_cell,
            normalised(log_share, mixture.component_cell),
        )
        assert expected_objective(other, r, problem.q_loc, problem.q_scale, kappa) < best


def test_update_by_hand() -> None:
    """One dimension, two components of one cell, three draws."""
    mixture = GaussianMixture(1, 1)
    mixture.replace(torch.zeros(2, 1), torch.ones(2, 1), torch.tensor([0, 0]), torch.tensor([0.5, 0.5]).log())
    r = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    apply_update(mixture, moments(r, torch.tensor([[0.0], [4.0], [7.0]])), 0.5, 1e-3)
    assert mixture.component_loc.flatten().tolist() == pytest.approx([2.0, 7.0])
    assert mixture.component_scale.square().flatten().tolist() == pytest.approx([8.5 / 2.5, 0.5 / 1.5])
    assert mixture.component_log_share.exp().tolist() == pytest.approx([2.5 / 4, 1.5 / 4])


@kinds
@maps
def test_log_prior_is_that_of_pseudo_observations_of_unit_variance(cell: list[int], kind: Covariance) -> None:
    mixture, kappa = make_mixture(cell, kind), 0.3
    share = kappa * mixture.component_log_share.sum()
    origin = torch.zeros_like(mixture.component_loc)
    unit = gaussian.expected_log_density(origin, torch.ones_like(origin), origin, mixture.component_scale)
    constant = 0.5 * kappa * gaussian.LOG_2PI * origin.numel()
    torch.testing.assert_close(log_prior(mixture, kappa), kappa * unit.sum() + share + constant)


@kinds
def test_components_without_weight_stay_where_they_were(kind: Covariance) -> None:
    mixture = make_mixture([0, 0, 1, 1], kind)
    loc, scale = mixture.component_loc.clone(), mixture.component_scale.clone()
    r = torch.rand(9, 4) * torch.tensor([1.0, 0.0, 0.0, 0.0])
    r[0, 3] = 0.04
    kept = apply_update(mixture, moments(r, torch.randn(9, 2)), 0.05, 1e-4)
    assert kept == [1, 2, 3]
    assert torch.equal(mixture.component_loc[kept], loc[kept])
    torch.testing.assert_close(mixture.component_scale[kept], scale[kept], rtol=0, atol=0)
    assert not torch.equal(mixture.component_loc[0], loc[0])
    share = torch.tensor([float(r[:, 0].sum()) + 0.05, 0.05, 0.05, 0.09])
    expected = torch.cat([share[:2] / share[:2].sum(), share[2:] / share[2:].sum()])
    torch.testing.assert_close(mixture.component_log_share.exp(), expected)
    assert mixture.covariance().isfinite().all()


def test_nothing_at_all_keeps_everything_and_evens_the_shares_out() -> None:
    mixture = make_mixture([0, 0, 1], "full")
    loc = mixture.component_loc.clone()
    assert apply_update(mixture, moments(torch.zeros(4, 3), torch.randn(4, 2)), 1e-3, 1e-4) == [0, 1, 2]
    assert torch.equal(mixture.component_loc, loc)
    torch.testing.assert_close(mixture.component_log_share.exp(), torch.tensor([0.5, 0.5, 1.0]))


@pytest.mark.float32
@kinds
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_single_precision_stays_so_and_sums_in_double(kind: Covariance, offset: float) -> None:
    mixture = make_mixture(MAPS["several"], kind)
    r, z = torch.softmax(torch.randn(500, 6), -1), torch.randn(500, 2) + offset
    sums = moments(r, z)
    assert {part.dtype for part in sums} == {torch.float64}
    apply_update(mixture, sums, 1e-3, 1e-4)
    names = ("loc", "scale", "log_share")
    assert {getattr(mixture, f"component_{name}").dtype for name in names} == {torch.float32}
    weight = r.double() / r.double().sum(0)
    mean = weight.T @ z.double()
    centred = z.double().unsqueeze(1) - mean
    covariance = torch.einsum("dk,dki,dkj->kij", weight, centred, centred)
    if kind == "diagonal":
        covariance = torch.diag_embed(covariance.diagonal(dim1=-2, dim2=-1))
    torch.testing.assert_close(mixture.component_loc.double(), mean, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(mixture.covariance().double(), covariance, rtol=1e-4, atol=1e-4)
