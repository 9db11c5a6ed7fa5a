"""The ladder where q(Z | X) is a mixture: T1, T4, T5 at a drawn z, by hand; T6 by quadrature over all z."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import expectation, gaussians, log_likelihood
from ladder_example import CASES, LATENT_DIM, Case, Example, assert_same, build, loss, outcome_of
from pyro.infer import TraceEnum_ELBO
from pyro.poutine.messenger import Messenger
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from causalpima.guides.fusion import FUSIONS
from causalpima.guides.graph import MixtureNormal, MixtureParameters
from causalpima.guides.guide import CellPosterior, Guide
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior, log_responsibilities
from causalpima.models.batch import Batch

OBJECTIVES: tuple[ObjectiveName, ...] = ("collapsed", "meanfield", "paper")
UNIFORM = torch.tensor([0.1, 0.9, 0.4, 0.7, 0.2, 0.6, 0.3])

every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
every_fusion = pytest.mark.parametrize("fusion", ["moe", "mopoe"])


class FixedDraw(Messenger):
    """z from given noise and a given choice of the Gaussian, instead of a draw."""

    def __init__(self, noise: Tensor, uniform: Tensor) -> None:
        super().__init__()
        self.noise, self.uniform = noise, uniform

    def _pyro_sample(self, msg: Any) -> None:
        if isinstance(msg["fn"], MixtureNormal):
            msg["value"] = msg["fn"].parameters.draw(self.noise, self.uniform)
            msg["done"] = True


def guide_of(example: Example, fusion: str, posterior: CellPosterior | None = None) -> Guide:
    model = example.model
    fused = FUSIONS[fusion](len(example.encoders), LATENT_DIM, False)
    return Guide(
        example.encoders, cell_posterior=posterior, node_names=model.node_names, sites=model.sites, fusion=fused
    )


def mixture_of(example: Example, fusion: str) -> MixtureParameters:
    found = guide_of(example, fusion).encode(example.batch)
    assert isinstance(found, MixtureParameters)
    return found


class Terms:
    """What the objectives are made of, at one z per sample, with torch.distributions; `[batch, K]` or `[batch]`."""

    def __init__(self, example: Example, q: MixtureParameters, z: Tensor) -> None:
        mixture, scale = example.model.mixture, (0.5 * q.log_variances).exp()
        weight, p = q.log_weights.exp(), gaussians(example)
        parts = Independent(Normal(q.locs, scale), 1)
        everything, free = log_likelihood(example, z)
        self.log_weight = example.model.graph.log_joint().flatten()[mixture.component_cell]
        self.log_weight = self.log_weight + mixture.component_log_share
        self.log_density = p.log_prob(z.unsqueeze(1))
        self.log_likelihood, self.free = everything[:, mixture.component_cell], free[:, mixture.component_cell]
        of_parts = [expectation(p, q.locs[:, s], scale[:, s]) for s in range(weight.shape[1])]
        self.expected = sum(weight[:, s, None] * value for s, value in enumerate(of_parts))
        self.log_q = MixtureSameFamily(Categorical(probs=weight), parts).log_prob(z)

    @property
    def log_gamma(self) -> Tensor:
        return torch.log_softmax(self.log_weight + self.log_density, dim=-1)

    @property
    def log_geometric(self) -> Tensor:
        return torch.log_softmax(self.log_weight + self.expected + self.free, dim=-1)

    def collapsed(self) -> Tensor:
        return torch.logsumexp(self.log_weight + self.log_density + self.log_likelihood, dim=-1) - self.log_q

    def closed(self, log_r: Tensor) -> Tensor:
        inside = self.log_weight + self.expected + self.log_likelihood - log_r
        return (log_r.exp() * inside).sum(-1) - self.log_q


HAND: dict[ObjectiveName, Callable[[Terms], Tensor]] = {
    "collapsed": Terms.collapsed,
    "meanfield": lambda terms: terms.closed(terms.log_geometric),
    "paper": lambda terms: terms.closed(terms.log_gamma),
}


def terms_of(example: Example, fusion: str) -> Terms:
    q = mixture_of(example, fusion)
    return Terms(example, q, q.draw(example.noise, UNIFORM[: len(example.noise)]))


def by_traces(elbo: Callable[..., Tensor], example: Example, guide: Guide) -> Tensor:
    return elbo(example.model, FixedDraw(example.noise, UNIFORM)(guide), example.batch)


@every_case
@every_fusion
def test_t1_the_collapsed_bound_of_a_mixture_is_that_of_stock_pyro_and_of_hand(fusion: str, case: Case) -> None:
    example = build(case)
    expected = outcome_of(loss(example, terms_of(example, fusion).collapsed()), example.leaves())
    guide = guide_of(example, fusion)
    stock = TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss
    for elbo in (stock, make_elbo("collapsed").differentiable_loss):
        assert_same(outcome_of(by_traces(elbo, example, guide), example.leaves()), expected)


@every_case
@every_fusion
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_t5_every_objective_equals_its_hand_written_form(objective: ObjectiveName, fusion: str, case: Case) -> None:
    example = build(case)
    expected = outcome_of(loss(example, HAND[objective](terms_of(example, fusion))), example.leaves())
    guide = guide_of(example, fusion, cell_posterior(objective, example.model))
    for direct in (True, False):
        elbo = make_elbo(objective, direct=direct).differentiable_loss
        assert_same(outcome_of(by_traces(elbo, example, guide), example.leaves()), expected)


@every_case
@every_fusion
def test_t4_the_bridge_from_the_collapsed_bound_to_that_of_the_paper(fusion: str, case: Case) -> None:
    """`T1 = closed(γ) + Σ_c γ_c [log p(z|c) - E_q log p(z|c)] + KL(γ ‖ p(N|z,X))`: entropies cancel at the drawn z."""
    terms = terms_of(build(case), fusion)
    log_gamma = terms.log_gamma
    exact = torch.log_softmax(terms.log_weight + terms.log_density + terms.log_likelihood, dim=-1)
    step = (log_gamma.exp() * (terms.log_density - terms.expected + log_gamma - exact)).sum(-1)
    torch.testing.assert_close(terms.collapsed(), terms.closed(log_gamma) + step, rtol=0, atol=1e-10)


@every_fusion
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_responsibilities_are_those_of_the_objective(objective: ObjectiveName, fusion: str) -> None:
    example = build(CASES["a decoder on N alone"])
    q = mixture_of(example, fusion)
    z = q.draw(example.noise, UNIFORM)
    terms = Terms(example, q, z)
    exact = torch.log_softmax(terms.log_weight + terms.log_density + terms.log_likelihood, dim=-1)
    expected = {"collapsed": exact, "meanfield": terms.log_geometric, "paper": terms.log_gamma}[objective]
    torch.testing.assert_close(log_responsibilities(objective, example.model, q, z, example.batch), expected)


def one_sample(example: Example, row: int, n: int) -> Example:
    """One sample of the batch, as often as there are points."""
    values = {m: value[[row] * n] for m, value in example.batch.values.items()}
    present = {m: None if mask is None else mask[[row] * n] for m, mask in example.batch.present.items()}
    return example._replace(batch=Batch(values, present, torch.arange(n), n))


def every_draw(q: MixtureParameters) -> tuple[Tensor, Tensor]:
    """Gauss-Hermite points of every Gaussian of the first sample, `[S P, J]`, and their weights under the mixture."""
    points, weights = np.polynomial.hermite_e.hermegauss(40)
    x, w = torch.from_numpy(points), torch.from_numpy(weights / math.sqrt(2 * math.pi))
    noise, weight = torch.cartesian_prod(x, x), torch.outer(w, w).flatten()
    drawn = [(share[0] * weight, one.loc[0] + one.scale[0] * noise) for share, one in q.parts()]
    return torch.cat([z for _, z in drawn]), torch.cat([w for w, _ in drawn])


@torch.no_grad()
@every_fusion
def test_t6_expectations_over_z_by_quadrature_are_bounds_in_order(fusion: str) -> None:
    """E of each objective ≤ log p(X) by a grid over z; `collapsed` ≥ `meanfield` ≥ any fixed r, such as γ at the mean.

    The drawn entropy has the exact one as its mean, and the gap of r* is the predicted KL, E KL(r* ‖ p(N|z,X)).
    """
    example = build(CASES["a decoder on N alone"])
    q = mixture_of(example, fusion)
    z, weight = every_draw(q)
    several = one_sample(example, 0, len(z))
    terms = Terms(several, mixture_of(several, fusion), z)
    collapsed, meanfield = weight @ terms.collapsed(), weight @ terms.closed(terms.log_geometric)
    paper = weight @ terms.closed(terms.log_gamma)
    at_mean = example.model.mixture.log_density(q.loc[0]) + terms.log_weight
    fixed = weight @ terms.closed(torch.log_softmax(at_mean, dim=-1).expand(len(z), -1))
    exact = torch.log_softmax(terms.log_weight + terms.log_density + terms.log_likelihood, dim=-1)
    gap = (terms.log_geometric.exp() * (terms.log_geometric - exact)).sum(-1)
    assert collapsed - meanfield == pytest.approx(float(weight @ gap), abs=1e-6)
    assert log_evidence(example) > collapsed > meanfield > fixed
    assert collapsed > paper


def log_evidence(example: Example) -> float:
    """log p(X) of the first sample by a grid over z."""
    axis = torch.linspace(-12, 12, 241)
    z, step = torch.cartesian_prod(axis, axis), float(axis[1] - axis[0])
    several = one_sample(example, 0, len(z))
    mixture = example.model.mixture
    weight = example.model.graph.log_joint().flatten()[mixture.component_cell] + mixture.component_log_share
    likelihood = log_likelihood(several, z)[0][:, mixture.component_cell]
    joint = weight + gaussians(example).log_prob(z.unsqueeze(1)) + likelihood
    return float(torch.logsumexp(joint.flatten(), dim=0)) + 2 * math.log(step)


@torch.no_grad()
@every_fusion
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_drawn_bounds_have_the_mean_of_the_quadrature(objective: ObjectiveName, fusion: str) -> None:
    torch.manual_seed(2)
    example = build(CASES["diagonal"])
    q, n = mixture_of(example, fusion), 4000
    z, weight = every_draw(q)
    several = one_sample(example, 0, len(z))
    expected = weight @ HAND[objective](Terms(several, mixture_of(several, fusion), z))
    drawn = one_sample(example, 0, n)
    guide = guide_of(drawn, fusion, cell_posterior(objective, example.model))
    terms = make_elbo(objective).evaluate(example.model, guide, drawn.batch).terms
    assert terms is not None
    error = terms.total.mean() - expected
    assert abs(error) < 4 * terms.total.std() / math.sqrt(n)
