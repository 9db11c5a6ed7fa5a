"""A prior without cells: the bounds of a variational autoencoder by hand and by Pyro's own; β, by hand and by force."""

from __future__ import annotations

from typing import cast, get_args

import pyro
import pytest
import torch
from ladder_example import CASES, LATENT_DIM, Case, Example, FixedNoise, at_the_noise, build, outcome_of
from pyro.infer import Trace_ELBO, TraceEnum_ELBO
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.enumerated import CollapsedELBO, Evaluation, make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior
from causalpima.models.decoders.base import Decoder
from causalpima.models.distributions import ComponentNormal
from causalpima.models.latent_priors import LatentPrior, StandardNormal
from causalpima.models.program import CausalPIMA

OBJECTIVES = get_args(ObjectiveName)


class Correlated(LatentPrior):
    """N(m, L Lᵀ), with parameters and a log-prior of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.loc = torch.nn.Parameter(torch.tensor([0.3, -0.8]))
        self.factor = torch.nn.Parameter(torch.tensor([[0.9, 0.0], [-0.4, 0.7]]))

    def distribution(self) -> ComponentNormal:
        return ComponentNormal(self.loc, self.factor, validate_args=False)

    def log_prior(self) -> Tensor:
        return -self.loc.square().sum()


PRIORS = {"standard": lambda: StandardNormal(LATENT_DIM), "correlated": Correlated}


def with_prior(kind: str, case: Case = CASES["diagonal"]) -> Example:
    example = build(case)
    model, decoders = example.model, {name: cast(Decoder, part) for name, part in example.model.decoders.items()}
    prior = PRIORS[kind]()
    return example._replace(
        model=CausalPIMA(model.graph, model.mixture, decoders, sites=case.sites, latent_prior=prior)
    )


def evaluated(example: Example, objective: ObjectiveName) -> Evaluation:
    guide = example.guide(cell_posterior(objective, example.model))
    return make_elbo(objective).evaluate(example.model, FixedNoise(example.noise)(guide), example.batch)


def by_hand(example: Example, objective: str) -> Tensor:
    """E_q log p(X|Z) - KL per sample: the ratio at the drawn z where the objective is collapsed, else the KL itself."""
    model, posterior, z = example.model, example.posterior(), example.sample()
    assert model.latent_prior is not None
    prior = model.latent_prior.distribution()
    scale_tril = prior.scale if prior.scale.dim() == 2 else torch.diag_embed(prior.scale)
    p = MultivariateNormal(prior.loc, scale_tril=scale_tril)
    if objective == "collapsed":
        bound = p.log_prob(z) - Independent(Normal(posterior.loc, posterior.scale), 1).log_prob(z)
    else:
        bound = -kl_divergence(MultivariateNormal(posterior.loc, scale_tril=torch.diag_embed(posterior.scale)), p)
    for name, decoder in model.decoders.items():
        likelihood = decoder(z, torch.tensor(0)).log_prob(example.batch.values[name])
        bound = bound + torch.where(example.batch.has(name), likelihood, 0.0)
    return bound


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", PRIORS)
def test_the_bound_of_a_variational_autoencoder(objective: ObjectiveName, kind: str) -> None:
    example = with_prior(kind)
    expected, evaluation = by_hand(example, objective), evaluated(example, objective)
    torch.testing.assert_close(evaluation.elbo, example.scale * expected.sum())
    assert evaluation.terms is not None
    torch.testing.assert_close(evaluation.terms.total, expected)
    assert not evaluation.terms.cells.any()
    assert not evaluation.terms.cell_entropy.any()


@pytest.mark.parametrize("kind", PRIORS)
def test_values_and_gradients_are_those_of_pyro(kind: str) -> None:
    example = with_prior(kind)
    assert example.model.latent_prior is not None
    leaves: dict[str, Tensor] = dict(example.model.latent_prior.named_parameters())
    leaves |= {name: p for name, p in example.leaves().items() if not name.startswith(("graph", "component"))}
    ours = outcome_of(at_the_noise(CollapsedELBO().differentiable_loss, example, example.guide()), leaves)
    for elbo in (TraceEnum_ELBO(max_plate_nesting=1, strict_enumeration_warning=False), Trace_ELBO()):
        theirs = outcome_of(at_the_noise(elbo.differentiable_loss, example, example.guide()), leaves)
        torch.testing.assert_close(ours.value, theirs.value, rtol=0, atol=1e-10)
        torch.testing.assert_close(ours.gradients, theirs.gradients, rtol=0, atol=1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_once_retired_the_mixture_is_in_its_place(objective: ObjectiveName) -> None:
    plain, example = build(CASES["diagonal"]), with_prior("standard")
    assert example.model.latent_prior is not None
    example.model.latent_prior.retire()
    values = [
        at_the_noise(make_elbo(objective).differentiable_loss, e, e.guide(cell_posterior(objective, e.model)))
        for e in (plain, example)
    ]
    assert values[0] == values[1]
    assert example.model.prior_in_force is None


def test_whether_it_is_in_force_is_saved_with_the_weights() -> None:
    retired, fresh = with_prior("standard").model, with_prior("standard").model
    assert retired.latent_prior is not None
    retired.latent_prior.retire()
    fresh.load_state_dict(retired.state_dict())
    assert fresh.prior_in_force is None


def test_its_log_prior_takes_the_place_of_that_of_the_graph() -> None:
    model = with_prior("correlated").model
    assert float(model.log_prior().detach()) == pytest.approx(-(0.3**2 + 0.8**2))
    assert model.latent_prior is not None
    model.latent_prior.retire()
    assert float(model.log_prior().detach()) == float(model.graph.log_prior().detach())


def test_a_decoder_of_cells_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^decoders: expected ones that depend on Z alone .* for image; let it"):
        with_prior("standard", CASES["decoders per cell"])


def test_a_guide_has_no_cells_either() -> None:
    example = with_prior("standard")
    with pyro.poutine.trace() as trace:
        example.guide(cell_posterior("meanfield", example.model))(example.batch)
    assert [name for name, site in trace.trace.nodes.items() if site["type"] == "sample"] == ["data", "Z"]


def terms_of(example: Example, objective: ObjectiveName) -> ELBOTerms:
    """As training records them."""
    terms = evaluated(example, objective).terms
    assert terms is not None
    return terms.times(example.model.kl_weight)


@pytest.mark.parametrize("beta", [0.3, 4.0])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_loss_of_a_beta_vae(objective: ObjectiveName, beta: float) -> None:
    example = with_prior("standard")
    likelihood = terms_of(example, objective).reconstruction
    total = torch.stack(list(likelihood.values())).sum(0)
    divergence = total - by_hand(example, objective)
    example.model.kl_weight = beta
    terms = terms_of(example, objective)
    torch.testing.assert_close(terms.total, total - beta * divergence)
    for name, value in likelihood.items():
        torch.testing.assert_close(terms.reconstruction[name], value)


def test_beta_with_decoders_per_cell_by_force() -> None:
    """β log Σ_c p(c) p(z|c) ∏_m p(x_m|z,c)^(1/β) - β log q(z|x), the maximum over r of E_r log p(x|z,c) - β KL."""
    beta, example = 2.5, build(CASES["decoders per cell"])
    example.model.kl_weight = beta
    model, z, posterior = example.model, example.sample(), example.posterior()
    log_q = Normal(posterior.loc, posterior.scale).log_prob(z).sum(-1)
    log_joint = model.graph.log_joint().reshape(-1)
    cells = []
    for cell in range(model.mixture.n_cells):
        component = model.mixture.component(torch.tensor(cell))
        value = log_joint[cell] + component.log_prob(z)
        for name, decoder in model.decoders.items():
            likelihood = decoder(z, torch.tensor(cell)).log_prob(example.batch.values[name])
            value = value + torch.where(example.batch.has(name), likelihood, 0.0) / beta
        cells.append(value)
    expected = beta * (torch.stack(cells).logsumexp(0) - log_q)
    torch.testing.assert_close(terms_of(example, "collapsed").total, expected)


def test_weights_of_modalities_stay_what_they_were() -> None:
    """(w_m / β) log p(x_m|z) in the program, w_m log p(x_m|z) in the terms."""
    example = with_prior("standard")
    plain = terms_of(example, "meanfield").reconstruction
    example.model.weights["image"], example.model.kl_weight = 0.25, 3.0
    weighted = terms_of(example, "meanfield").reconstruction
    torch.testing.assert_close(weighted["image"], 0.25 * plain["image"])
    torch.testing.assert_close(weighted["curve"], plain["curve"])


def test_divergence_from_the_standard_normal_in_closed_form() -> None:
    """½ Σ_j (μ_j² + σ_j² - 1 - log σ_j²), beside the general one."""
    example = with_prior("standard")
    posterior, terms = example.posterior(), terms_of(example, "meanfield")
    moments = posterior.loc.square() + posterior.log_variance.exp() - 1 - posterior.log_variance
    torch.testing.assert_close(-(terms.latent + terms.latent_entropy), 0.5 * moments.sum(-1))
