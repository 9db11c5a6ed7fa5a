"""T6 and T7 of the ladder: what the objectives differ by in expectation over z, by quadrature and by drawing."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from by_hand import Pieces, kl, pieces
from hypothesis import given, settings
from hypothesis import strategies as st
from ladder_example import CASES, Case, Example, FixedNoise, build
from torch import Tensor
from torch.distributions import MultivariateNormal

from causalpima.guides.encoders import Encoder, GaussianParameters
from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.closed_form import Components
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior
from causalpima.models.batch import Batch

N_POINTS = 20
OBJECTIVES: tuple[ObjectiveName, ...] = ("collapsed", "meanfield", "paper")


class Quadrature(NamedTuple):
    """Gauss-Hermite points for two dimensions: Σ weight f(noise) = E f(ε), ε ~ N(0, I)."""

    noise: Tensor
    weight: Tensor


def quadrature() -> Quadrature:
    points, weights = np.polynomial.hermite_e.hermegauss(N_POINTS)
    x, w = torch.from_numpy(points), torch.from_numpy(weights / math.sqrt(2 * math.pi))
    return Quadrature(torch.cartesian_prod(x, x), torch.outer(w, w).flatten())


def repeated(example: Example, row: int, noise: Tensor) -> Example:
    """One sample of the batch, as often as there are points, each with its own z."""
    n = len(noise)
    values = {m: value[[row] * n] for m, value in example.batch.values.items()}
    present = {m: None if mask is None else mask[[row] * n] for m, mask in example.batch.present.items()}
    return example._replace(batch=Batch(values, present, torch.arange(n), n), noise=noise)


def per_sample(objective: ObjectiveName, example: Example) -> Tensor:
    """The bound for each sample of the batch, from Pyro traces."""
    guide = FixedNoise(example.noise)(example.guide(cell_posterior(objective, example.model)))
    terms = make_elbo(objective).evaluate(example.model, guide, example.batch).terms
    assert terms is not None
    return terms.total


class Expected(NamedTuple):
    """Expectations over z of the three objectives, and the pieces at every point."""

    bound: dict[ObjectiveName, Tensor]
    pieces: Pieces
    weight: Tensor

    def mean(self, value: Tensor) -> Tensor:
        return self.weight @ value

    def disagreement(self) -> Tensor:
        """E KL(γ(z₁) ‖ γ(z₂)) over two independent draws."""
        log_gamma = self.pieces.log_gamma
        gamma = log_gamma.exp()
        return self.mean((gamma * log_gamma).sum(-1)) - self.mean(gamma @ self.mean(log_gamma))


@torch.no_grad()
def expected(case: Case, row: int = 0) -> Expected:
    points = quadrature()
    example = repeated(build(case), row, points.noise)
    bounds = {name: points.weight @ per_sample(name, example) for name in OBJECTIVES}
    return Expected(bounds, pieces(example), points.weight)


@pytest.mark.parametrize("name", ["diagonal", "full, a site per node"])
def test_t6_gap_of_any_r(name: str) -> None:
    points = quadrature()
    example = repeated(build(CASES[name]), 3, points.noise)
    with torch.no_grad():
        p = pieces(example)
        log_r = torch.log_softmax(torch.randn(6), dim=-1).expand_as(p.log_gamma)
        gap = points.weight @ (per_sample("collapsed", example) - p.closed(log_r))
        torch.testing.assert_close(gap, points.weight @ kl(log_r, p.log_gamma), rtol=0, atol=1e-10)
    assert gap > 0.1


@pytest.mark.parametrize("name", ["diagonal", "full, a site per node"])
def test_t6_gap_of_the_best_r_is_that_of_a_geometric_mean(name: str) -> None:
    e = expected(CASES[name])
    gap = -torch.logsumexp(e.mean(e.pieces.log_gamma), dim=-1)
    torch.testing.assert_close(e.bound["collapsed"] - e.bound["meanfield"], gap, rtol=0, atol=1e-10)
    assert gap > 0.01


def test_t6_gap_of_the_best_r_where_a_decoder_knows_the_cell_but_not_z() -> None:
    e = expected(CASES["a decoder on N alone"])
    gap = -torch.logsumexp(e.mean(e.pieces.log_exact), dim=-1)
    torch.testing.assert_close(e.bound["collapsed"] - e.bound["meanfield"], gap, rtol=0, atol=1e-10)
    assert gap > 0.01


@pytest.mark.parametrize("name", list(CASES))
def test_t6_gap_of_the_paper(name: str) -> None:
    e = expected(CASES[name])
    gap = e.disagreement() + e.mean(kl(e.pieces.log_gamma, e.pieces.log_exact))
    torch.testing.assert_close(e.bound["collapsed"] - e.bound["paper"], gap, rtol=0, atol=1e-10)
    assert gap > 0.01


@pytest.mark.parametrize("objective", ["collapsed", "paper"])
def test_t6_the_mean_over_draws_is_within_four_standard_errors(objective: ObjectiveName) -> None:
    e, n = expected(CASES["diagonal"], row=1), 20_000
    torch.manual_seed(11)
    example = repeated(build(CASES["diagonal"]), 1, torch.empty(n, 2))
    torch.manual_seed(12)
    guide = example.guide(cell_posterior(objective, example.model))
    terms = make_elbo(objective).evaluate(example.model, guide, example.batch).terms
    assert terms is not None
    standard_error = terms.total.std() / math.sqrt(n)
    assert 0 < standard_error < 0.05
    assert (terms.total.mean() - e.bound[objective]).abs() < 4 * standard_error


@pytest.mark.parametrize("name", ["diagonal", "full, a site per node"])
def test_t7_identical_components_make_all_equal(name: str) -> None:
    points = quadrature()
    example = repeated(build(CASES[name]), 0, points.noise)
    with torch.no_grad():
        mixture = example.model.mixture
        mixture.component_loc.copy_(mixture.component_loc[:1].expand_as(mixture.component_loc).clone())
        mixture.component_scale.copy_(mixture.component_scale[:1].expand_as(mixture.component_scale).clone())
        collapsed, meanfield, paper = (points.weight @ per_sample(o, example) for o in OBJECTIVES)
    torch.testing.assert_close(meanfield, collapsed, rtol=0, atol=1e-10)
    torch.testing.assert_close(paper, collapsed, rtol=0, atol=1e-10)


class Narrow(Encoder):
    """An encoder that is all but certain: σ = 1e-6."""

    def forward(self, value: Tensor, observed: Tensor | None = None) -> GaussianParameters:
        loc = super().forward(value, observed).loc
        return GaussianParameters(loc, torch.full_like(loc, 2 * math.log(1e-6)))


@pytest.mark.parametrize("name", ["diagonal", "full, a site per node"])
def test_t7_a_narrow_posterior_makes_all_equal(name: str) -> None:
    points = quadrature()
    example = build(CASES[name])
    wide = repeated(example, 0, points.noise)
    narrow = wide._replace(encoders={m: Narrow(encoder.network) for m, encoder in example.encoders.items()})
    with torch.no_grad():
        for which, atol in ((narrow, 1e-8), (wide, None)):
            bounds = [points.weight @ per_sample(o, which) for o in OBJECTIVES]
            spread = max(bounds) - min(bounds)
            assert spread > 1e-2 if atol is None else spread < atol


def test_t7_one_component_makes_all_equal() -> None:
    points = quadrature()
    q_loc, q_scale = torch.tensor([0.3, -1.2]), torch.tensor([0.5, 1.4])
    one = Components(torch.zeros(1), torch.tensor([[1.0, 0.4]]), torch.tensor([[0.8, 2.0]]), torch.tensor([0]))
    sample = q_loc + q_scale * points.noise
    q = (q_loc.expand_as(sample), q_scale.expand_as(sample))
    reconstruction = {"image": -sample.square().sum(-1)}
    bounds = [
        points.weight @ terms.total
        for terms in (
            closed_form.collapsed(sample, *q, one, reconstruction),
            closed_form.meanfield(*q, one, reconstruction),
            closed_form.paper(sample, *q, one, reconstruction),
        )
    ]
    torch.testing.assert_close(bounds[1], bounds[0], rtol=0, atol=1e-12)
    torch.testing.assert_close(bounds[2], bounds[0], rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n_components=st.integers(1, 6), full=st.booleans(), width=st.floats(0.05, 3.0))
def test_t7_order_of_the_objectives(seed: int, n_components: int, full: bool, width: float) -> None:
    """L_i ≥ L_ii(r*) ≥ L_ii(r) for r = γ(μ), E γ(z), and L_i ≥ E L_paper."""
    torch.manual_seed(seed)
    points = quadrature()
    scale = torch.rand(n_components, 2) + 0.3
    if full:
        scale = torch.diag_embed(scale) + torch.tril(torch.randn(n_components, 2, 2), diagonal=-1)
    log_weight = torch.log_softmax(torch.randn(n_components), dim=-1)
    parts = Components(log_weight, torch.randn(n_components, 2), scale, torch.arange(n_components))
    loc = torch.randn(2)
    sample = loc + width * points.noise
    q = (loc.expand_as(sample), torch.full_like(sample, width))

    def mean_field(log_r: Tensor) -> Tensor:
        return points.weight @ closed_form.with_responsibilities(log_r.expand(len(sample), -1), *q, parts, {}).total

    gamma = gamma_at(parts, sample)
    collapsed = points.weight @ closed_form.collapsed(sample, *q, parts, {}).total
    best = points.weight @ closed_form.meanfield(*q, parts, {}).total
    paper = points.weight @ closed_form.paper(sample, *q, parts, {}).total
    assert collapsed >= best - 1e-9
    assert collapsed >= paper - 1e-9
    for log_r in (gamma_at(parts, loc), (points.weight @ gamma.exp()).log()):
        assert best >= mean_field(log_r) - 1e-9


def gamma_at(parts: Components, sample: Tensor) -> Tensor:
    scale_tril = torch.diag_embed(parts.scale) if parts.scale.dim() == 2 else parts.scale
    log_density = MultivariateNormal(parts.loc, scale_tril=scale_tril).log_prob(sample.unsqueeze(-2))
    return torch.log_softmax(parts.log_weight + log_density, dim=-1)


def test_t7_the_order_is_strict_where_clusters_overlap() -> None:
    e = expected(CASES["diagonal"])
    centre = pieces(repeated(build(CASES["diagonal"]), 0, torch.zeros(1, 2)))
    at_mean = e.mean(e.pieces.closed(centre.log_gamma.detach().expand_as(e.pieces.log_gamma)))
    assert e.bound["collapsed"] > e.bound["meanfield"] + 0.01
    assert e.bound["meanfield"] > at_mean + 1e-4
