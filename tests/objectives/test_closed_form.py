"""The closed forms by themselves: against their definition by quadrature, and the laws that they obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.closed_form import (
    Components,
    ELBOTerms,
    geometric_log_responsibilities,
    with_responsibilities,
)


class Setting(NamedTuple):
    """A mixture, q(Z|X), z, and two modalities: one decoded from z alone, one per cell."""

    components: Components
    q_loc: Tensor
    q_scale: Tensor
    sample: Tensor
    log_likelihoods: dict[str, Tensor]
    latent_free: Tensor


def setting(seed: int, n_cells: int = 3, batch: int = 4, latent: int = 2, full: bool = False) -> Setting:
    """The first cell has two components."""
    torch.manual_seed(seed)
    cell = torch.tensor([*range(n_cells), 0])
    n = len(cell)
    scale = torch.rand(n, latent) + 0.3
    if full:
        scale = torch.diag_embed(scale) + torch.tril(torch.randn(n, latent, latent), diagonal=-1)
    components = Components(torch.log_softmax(torch.randn(n), dim=-1), torch.randn(n, latent), scale, cell)
    q_loc, q_scale = torch.randn(batch, latent), torch.rand(batch, latent) + 0.2
    latent_free = torch.randn(batch, n_cells)
    likelihoods = {"image": torch.randn(batch), "curve": latent_free}
    return Setting(components, q_loc, q_scale, q_loc + q_scale * torch.randn_like(q_loc), likelihoods, latent_free)


def all_three(s: Setting) -> dict[str, ELBOTerms]:
    return {
        "collapsed": closed_form.collapsed(s.sample, s.q_loc, s.q_scale, s.components, s.log_likelihoods),
        "meanfield": closed_form.meanfield(s.q_loc, s.q_scale, s.components, s.log_likelihoods, s.latent_free),
        "paper": closed_form.paper(s.sample, s.q_loc, s.q_scale, s.components, s.log_likelihoods),
    }


def mean_field_bound(s: Setting, log_r: Tensor) -> Tensor:
    return with_responsibilities(log_r, s.q_loc, s.q_scale, s.components, s.log_likelihoods).total


seeds = st.integers(0, 10**6)
sizes = given(seed=seeds, n_cells=st.integers(1, 5), latent=st.integers(1, 4), full=st.booleans())


@settings(max_examples=25)
@sizes
def test_terms_by_quadrature(seed: int, n_cells: int, latent: int, full: bool) -> None:
    """E over z of each term, along random directions of z for every dimension: three points each are exact."""
    s = setting(seed, n_cells, latent=latent, full=full)
    log_r = torch.log_softmax(torch.randn(len(s.q_loc), len(s.components.cell)), dim=-1)
    terms = with_responsibilities(log_r, s.q_loc, s.q_scale, s.components, s.log_likelihoods)
    points, weights = np.polynomial.hermite_e.hermegauss(3)
    noise = torch.cartesian_prod(*[torch.from_numpy(points)] * latent).reshape(-1, latent)
    weight = torch.cartesian_prod(*[torch.from_numpy(weights)] * latent).reshape(-1, latent).prod(-1)
    z = s.q_loc + s.q_scale * noise.unsqueeze(1)
    scale = s.components.scale
    p = MultivariateNormal(s.components.loc, scale_tril=scale if full else torch.diag_embed(scale))
    mean = (weight / weight.sum()).unsqueeze(-1)
    r = log_r.exp()
    torch.testing.assert_close(terms.latent, (mean * (r * p.log_prob(z.unsqueeze(2))).sum(-1)).sum(0))
    torch.testing.assert_close(terms.latent_entropy, -(mean * Normal(s.q_loc, s.q_scale).log_prob(z).sum(-1)).sum(0))
    torch.testing.assert_close(terms.cells, r @ s.components.log_weight)
    torch.testing.assert_close(terms.cell_entropy, torch.distributions.Categorical(probs=r).entropy())


@settings(max_examples=25)
@sizes
def test_collapsed_is_the_log_of_a_sum(seed: int, n_cells: int, latent: int, full: bool) -> None:
    s = setting(seed, n_cells, latent=latent, full=full)
    scale, cell = s.components.scale, s.components.cell
    p = MultivariateNormal(s.components.loc, scale_tril=scale if full else torch.diag_embed(scale))
    joint = s.components.log_weight.exp() * p.log_prob(s.sample.unsqueeze(1)).exp() * s.latent_free[:, cell].exp()
    expected = joint.sum(-1).log() + s.log_likelihoods["image"] - Normal(s.q_loc, s.q_scale).log_prob(s.sample).sum(-1)
    torch.testing.assert_close(all_three(s)["collapsed"].total, expected)


@settings(max_examples=25)
@sizes
def test_the_geometric_responsibilities_are_the_best(seed: int, n_cells: int, latent: int, full: bool) -> None:
    s = setting(seed, n_cells, latent=latent, full=full)
    log_r = geometric_log_responsibilities(s.q_loc, s.q_scale, s.components, s.latent_free).requires_grad_()
    best = mean_field_bound(s, torch.log_softmax(log_r, dim=-1))
    torch.testing.assert_close(all_three(s)["meanfield"].total, best)
    (slope,) = torch.autograd.grad(best.sum(), log_r)
    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-12)
    for size in (0.01, 1.0, 10.0):
        other = torch.log_softmax(log_r + size * torch.randn_like(log_r), dim=-1)
        assert bool((best >= mean_field_bound(s, other) - 1e-12).all())


def test_without_the_likelihood_on_n_alone_the_responsibilities_are_not_the_best() -> None:
    s = setting(0)
    without = geometric_log_responsibilities(s.q_loc, s.q_scale, s.components)
    assert bool((mean_field_bound(s, without) < all_three(s)["meanfield"].total - 1e-3).all())


def test_responsibilities_are_normalised() -> None:
    s = setting(1)
    for free in (None, s.latent_free):
        log_r = geometric_log_responsibilities(s.q_loc, s.q_scale, s.components, free)
        torch.testing.assert_close(log_r.exp().sum(-1), torch.ones(4))


def permuted(parts: Components) -> Components:
    order = torch.tensor([2, 0, 3, 1])
    return Components(*(part[order] for part in parts))


def split_in_two(parts: Components) -> Components:
    """The last component as two equal ones, with 0.3 and 0.7 of its weight."""
    twice = Components(*(torch.cat([part, part[-1:]]) for part in parts))
    log_weight = twice.log_weight.clone()
    log_weight[-2:] += torch.tensor([0.3, 0.7]).log()
    return twice._replace(log_weight=log_weight)


def with_an_impossible_one(parts: Components) -> Components:
    more = Components(*(torch.cat([part, part[:1]]) for part in parts))
    log_weight = more.log_weight.clone()
    log_weight[-1] = -torch.inf
    return more._replace(log_weight=log_weight, loc=more.loc + torch.cat([torch.zeros(4, 2), torch.ones(1, 2)]))


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("change", [permuted, split_in_two, with_an_impossible_one])
def test_the_bounds_know_components_by_what_they_are(change: Callable[[Components], Components], full: bool) -> None:
    s = setting(2, full=full)
    changed = all_three(s._replace(components=change(s.components)))
    for name, terms in all_three(s).items():
        torch.testing.assert_close(changed[name].total, terms.total)


def test_an_impossible_component_leaves_gradients_finite() -> None:
    s = setting(3)
    s.components.loc.requires_grad_()
    for terms in all_three(s._replace(components=with_an_impossible_one(s.components))).values():
        (gradient,) = torch.autograd.grad(terms.total.sum(), s.components.loc, retain_graph=True)
        assert bool(gradient.isfinite().all())


def test_a_likelihood_that_all_cells_share_moves_no_responsibility() -> None:
    s = setting(4)
    for name, terms in all_three(s).items():
        more = {"image": s.log_likelihoods["image"] + 7.0, "curve": s.log_likelihoods["curve"]}
        shifted = all_three(s._replace(log_likelihoods=more))[name]
        torch.testing.assert_close(shifted.total, terms.total + 7.0)
        torch.testing.assert_close(shifted.cell_entropy, terms.cell_entropy)


def test_likelihoods_per_cell_reach_every_component_of_the_cell() -> None:
    s = setting(5)
    shift = torch.tensor([3.0, 0.0, 0.0])
    log_r = torch.log_softmax(torch.randn(4, 4), dim=-1)
    moved = with_responsibilities(log_r, s.q_loc, s.q_scale, s.components, {"curve": s.latent_free + shift})
    start = with_responsibilities(log_r, s.q_loc, s.q_scale, s.components, {"curve": s.latent_free})
    torch.testing.assert_close(moved.total - start.total, 3.0 * (log_r[:, 0].exp() + log_r[:, 3].exp()))


def test_without_modalities_the_bounds_are_those_of_the_prior() -> None:
    """No data: no bound on log 1 = 0 is positive where z is integrated."""
    s = setting(6)
    assert bool((closed_form.meanfield(s.q_loc, s.q_scale, s.components, {}).total <= 0).all())


def test_far_from_all_components_the_bounds_stay_finite() -> None:
    s = setting(7)
    far = s._replace(q_loc=s.q_loc + 1e4, sample=s.sample + 1e4)
    assert all(bool(terms.total.isfinite().all()) for terms in all_three(far).values())
