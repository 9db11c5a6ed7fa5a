"""Every likelihood under every objective, with gaps and absent samples, against the hand-written bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import pytest
import torch
import torch.distributions as td
from by_hand import Pieces, from_tensors, pieces
from ladder_example import (
    LATENT_DIM,
    Case,
    Example,
    FixedNoise,
    assert_same,
    at_the_noise,
    build,
    loss,
    outcome_of,
    stock,
    three_ways,
)
from torch import Tensor

from causalpima.guides.encoders import features_of, mlp_encoder
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior
from causalpima.models.batch import Batch
from causalpima.models.decoders.likelihoods import (
    BernoulliLikelihood,
    CategoricalLikelihood,
    Likelihood,
    LikelihoodDecoder,
    LikelihoodName,
    NegativeBinomialLikelihood,
    PoissonLikelihood,
    StudentTLikelihood,
)
from causalpima.models.decoders.networks import mlp_network
from causalpima.models.program import CausalPIMA

K, SHAPE, N = 3, (4,), 7
OBJECTIVES: dict[ObjectiveName, Callable[[Pieces], Tensor]] = {
    "collapsed": lambda p: p.collapsed(),
    "meanfield": lambda p: p.closed(p.log_geometric),
    "paper": lambda p: p.closed(p.log_gamma),
}


class Kind(NamedTuple):
    """A likelihood, values for it, its closed form from the outputs `[..., P]`, and filler that no sample can hold."""

    likelihood: Callable[[], Likelihood]
    values: Callable[[], Tensor]
    closed: Callable[[Tensor, Any], td.Distribution]
    filler: float


def negative_binomial(outputs: Tensor, likelihood: Any) -> td.Distribution:
    mean, alpha = (outputs[..., 0] + 0.9).exp(), likelihood.dispersion
    return td.NegativeBinomial(1 / alpha, probs=alpha * mean / (1 + alpha * mean))


KINDS: dict[LikelihoodName, Kind] = {
    "bernoulli": Kind(
        BernoulliLikelihood,
        lambda: torch.bernoulli(torch.full((N, *SHAPE), 0.4)),
        lambda outputs, _: td.Bernoulli(logits=outputs[..., 0]),
        7.0,
    ),
    "categorical": Kind(
        lambda: CategoricalLikelihood(K),
        lambda: torch.randint(K, (N, *SHAPE)).double(),
        lambda outputs, _: td.Categorical(logits=outputs),
        99.0,
    ),
    "poisson": Kind(
        lambda: PoissonLikelihood(0.9),
        lambda: torch.poisson(torch.full((N, *SHAPE), 2.5)),
        lambda outputs, _: td.Poisson((outputs[..., 0] + 0.9).exp()),
        -3.0,
    ),
    "negative_binomial": Kind(
        lambda: NegativeBinomialLikelihood(0.9, 0.4, SHAPE),
        lambda: torch.poisson(torch.full((N, *SHAPE), 2.5)),
        negative_binomial,
        -0.5,
    ),
    "student_t": Kind(
        lambda: StudentTLikelihood(0.6, 5.0, learned=True),
        lambda: 2 * torch.randn(N, *SHAPE),
        lambda outputs, one: td.StudentT(one.degrees_of_freedom, outputs[..., 0], one.scale),
        1e30,
    ),
}
every = pytest.mark.parametrize("name", list(KINDS))
each_objective = pytest.mark.parametrize("objective", list(OBJECTIVES))
heads = pytest.mark.parametrize("per_cell", [False, True], ids=["one head", "a head per cell"])


def example_with(name: LikelihoodName, per_cell: bool, gaps: bool = True, filler: float = 0.0) -> Example:
    """The ladder's model, whose curve is of another likelihood, complete or with gaps; the image stays Gaussian."""
    example, kind = build(Case(sites="nodes")), KINDS[name]
    n_cells = example.model.graph.n_cells
    heads, likelihood = (n_cells if per_cell else None), kind.likelihood()
    network = mlp_network(LATENT_DIM, SHAPE, (5,), heads or 1, likelihood.n_outputs)
    decoder = LikelihoodDecoder(*network, SHAPE, likelihood, heads)
    decoders: dict[str, Any] = {"image": example.model.decoders["image"], "curve": decoder}
    model = CausalPIMA(example.model.graph, example.model.mixture, decoders, sites="nodes")
    curve_encoder = mlp_encoder(SHAPE, (5,), LATENT_DIM, masked=gaps, features=features_of(name, K))
    encoders = {"image": example.encoders["image"], "curve": curve_encoder}
    return Example(model, encoders, batch_with(example.batch, kind, gaps, filler), example.noise)


def batch_with(batch: Batch, kind: Kind, gaps: bool, filler: float) -> Batch:
    values = {"image": batch.values["image"], "curve": kind.values()}
    present = {m: batch.present[m] for m in values}
    if not gaps:
        return Batch(values, present, batch.index, batch.n_samples)
    observed = torch.rand(N, *SHAPE) < 0.6
    observed[:, 0], observed[0, 1] = True, False
    values["curve"] = torch.where(observed, values["curve"], filler)
    return Batch(values, present, batch.index, batch.n_samples, {"curve": observed})


def by_hand(name: LikelihoodName, example: Example) -> Pieces:
    """The pieces of the bounds, with the likelihoods from `torch.distributions`, one cell and one sample at a time."""
    model = example.model
    without = example._replace(model=CausalPIMA(model.graph, model.mixture, {}, sites="nodes"))
    image: Any = model.decoders["image"]
    of_image = td.Normal(image(example.sample(), torch.tensor(0)).mean, image.variance.scale())
    log_p = of_image.log_prob(example.batch.values["image"]).flatten(1).sum(1) * example.batch.present["image"]
    log_p_curve = torch.stack([curve_given(name, example, cell) for cell in range(model.graph.n_cells)], dim=-1)
    return pieces(without)._replace(log_likelihood=log_p.unsqueeze(-1) + log_p_curve)


def curve_given(name: LikelihoodName, example: Example, cell: int) -> Tensor:
    """log p of the measured elements of the curve given z and a cell, `[batch]`."""
    batch, decoder = example.batch, cast(LikelihoodDecoder, example.model.decoders["curve"])
    flat = decoder.head(decoder.body(example.sample()))
    heads = flat.reshape(N, decoder.n_cells or 1, *SHAPE, decoder.likelihood.n_outputs)
    closed = KINDS[name].closed(heads[:, cell if decoder.n_cells else 0], decoder.likelihood)
    present = cast(Tensor, batch.present["curve"]).unsqueeze(-1)
    observed = batch.observed.get("curve", torch.ones(N, *SHAPE, dtype=torch.bool)) & present
    in_support = torch.where(observed, batch.values["curve"], 0.0)
    return torch.where(observed, closed.log_prob(in_support), 0.0).sum(-1)


@every
@each_objective
@heads
@pytest.mark.parametrize("gaps", [True, False], ids=["gaps", "complete"])
def test_every_objective_is_its_hand_written_form(
    name: LikelihoodName, objective: ObjectiveName, per_cell: bool, gaps: bool
) -> None:
    example = example_with(name, per_cell, gaps)
    expected = outcome_of(loss(example, OBJECTIVES[objective](by_hand(name, example))), trained(example))
    guide = example.guide(cell_posterior(objective, example.model))
    for outcome in three_ways(make_elbo(objective), guide, example):
        assert_same(outcome, expected)
    by_pyro = make_elbo(objective, direct=False).differentiable_loss
    assert_same(outcome_of(at_the_noise(by_pyro, example, guide), trained(example)), expected)
    assert_same(outcome_of(loss(example, from_tensors(objective, example).total), trained(example)), expected)


def trained(example: Example) -> Mapping[str, Tensor]:
    return {name: leaf for name, leaf in example.leaves().items() if leaf.requires_grad}


@every
@heads
def test_pyros_own_enumeration_gives_the_same(name: LikelihoodName, per_cell: bool) -> None:
    example = example_with(name, per_cell)
    expected = outcome_of(loss(example, by_hand(name, example).collapsed()), trained(example))
    assert_same(outcome_of(stock(example, example.guide()), trained(example)), expected)


@every
@each_objective
@heads
def test_filler_changes_nothing(name: LikelihoodName, objective: ObjectiveName, per_cell: bool) -> None:
    outcomes = []
    for filler in (0.0, KINDS[name].filler):
        example = example_with(name, per_cell, filler=filler)
        guide = FixedNoise(example.noise)(example.guide(cell_posterior(objective, example.model)))
        value = make_elbo(objective).differentiable_loss(example.model, guide, example.batch)
        outcomes.append(outcome_of(value, trained(example)))
    assert outcomes[0].value == outcomes[1].value
    torch.testing.assert_close(outcomes[0].gradients, outcomes[1].gradients, rtol=0, atol=0)


@every
@each_objective
def test_gradients_reach_the_parameters_of_the_likelihood(name: LikelihoodName, objective: ObjectiveName) -> None:
    example = example_with(name, per_cell=True)
    guide = example.guide(cell_posterior(objective, example.model))
    gradients = outcome_of(at_the_noise(make_elbo(objective).differentiable_loss, example, guide), trained(example))
    assert gradients.gradients is not None
    of_curve = {name: g for name, g in gradients.gradients.items() if "curve" in name}
    assert of_curve
    assert [name for name, g in of_curve.items() if g.count_nonzero() == 0 or not g.isfinite().all()] == []
