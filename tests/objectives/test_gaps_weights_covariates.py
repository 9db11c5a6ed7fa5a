"""Gaps, weights, covariates and a physical law on N, all at once, in every objective, against the bounds by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from by_hand import Pieces, from_tensors, pieces
from ladder_example import (
    LATENT_DIM,
    SHAPES,
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
from torch.distributions import Normal

from causalpima.guides.encoders import mlp_encoder
from causalpima.inference.objectives.enumerated import make_elbo
from causalpima.inference.objectives.responsibilities import ObjectiveName, cell_posterior, log_responsibilities
from causalpima.models.batch import Batch, Modality
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from causalpima.models.decoders.physics.laws import Linear
from causalpima.models.program import CausalPIMA

WEIGHTS = {"image": 0.3, "curve": 2.5, "assay": 7.0}
MEAN_COVARIATES = torch.tensor([0.6, 0.3, 0.1])
HAND = {
    "collapsed": lambda p: p.collapsed(),
    "meanfield": lambda p: p.closed(p.log_geometric),
    "paper": lambda p: p.closed(p.log_gamma),
}
each_objective = pytest.mark.parametrize("objective", list(HAND))
each_source = pytest.mark.parametrize("source", ["cell", "both"])
given_or_not = pytest.mark.parametrize("covariates", [True, False], ids=["covariates", "their average"])


# N1, N2, N3 -> Z -> image, assay <- covariates
#           \-> curve: a straight line for each cell (and, with `both`, each z)
def example_with(source: ParameterSource = "cell", covariates: bool = True, filler: float = 0.0) -> Example:
    """The richest model of the ladder; image and curve lack elements, and samples; the assay lacks all samples."""
    example = build(Case((2, 3, 2), "full", per_cell=True, several=True, sites="nodes"))
    graph, mixture = example.model.graph, example.model.mixture
    modality = Modality("curve", torch.Size(SHAPES["curve"]), "curve", torch.linspace(0, 1, 5))
    n_inputs = LATENT_DIM + len(MEAN_COVARIATES)
    variance = {name: DecoderVariance("learned", value) for name, value in (("image", 0.5), ("curve", 0.8))}
    decoders: dict[str, Decoder] = {
        "image": mlp_decoder(n_inputs, SHAPES["image"], (5,), variance["image"], n_cells=graph.n_cells),
        "curve": PhysicsDecoder(Linear(), modality, graph.n_cells, variance["curve"], n_inputs, source, (4,)),
        "assay": mlp_decoder(n_inputs, SHAPES["assay"], (5,), DecoderVariance("learned", 0.3)),
    }
    model = CausalPIMA(graph, mixture, decoders, None, "nodes", WEIGHTS, MEAN_COVARIATES)
    encoders = {m: mlp_encoder(shape, (5,), LATENT_DIM, m != "assay") for m, shape in SHAPES.items()}
    batch = with_gaps(example.batch, filler)
    levels = torch.eye(3)[torch.tensor([0, 2, 1, 1, 0, 0, 2])]
    return Example(
        model, encoders, dataclasses.replace(batch, covariates=levels if covariates else None), example.noise
    )


def with_gaps(batch: Batch, filler: float) -> Batch:
    observed = {m: torch.rand(7, *SHAPES[m]) < 0.6 for m in ("image", "curve")}
    values = {m: torch.where(observed[m], v, filler) if m in observed else v for m, v in batch.values.items()}
    values["assay"] = torch.full_like(values["assay"], filler)
    return Batch(values, batch.present, batch.index, batch.n_samples, observed)


def by_hand(example: Example) -> Pieces:
    """The pieces of the bounds; likelihoods element by element, one cell after the other."""
    model = example.model
    without = example._replace(model=CausalPIMA(model.graph, model.mixture, {}, sites="nodes"))
    found = {m: likelihood_of(example, m) for m in ("image", "curve")}
    cell = model.mixture.component_cell
    everything = (found["image"] + found["curve"])[:, cell]
    latent_free = torch.zeros_like(everything) if model.decoders["curve"].depends_on_latent else found["curve"][:, cell]
    return pieces(without)._replace(log_likelihood=everything, latent_free=latent_free)


def likelihood_of(example: Example, m: str) -> Tensor:
    """`weight Σ_measured log N(x | mean(z, covariates, c), σ̂²)`, `[batch, C]`; the absent assay has none."""
    batch, z, decoder = example.batch, example.sample(), example.model.decoders[m]
    seen = MEAN_COVARIATES.expand(len(z), 3) if batch.covariates is None else batch.covariates
    inputs, scale, columns = torch.cat([z, seen], dim=-1), decoder.variance.scale(), []  # type: ignore[union-attr, operator]
    present: Any = batch.present[m]
    for c in range(example.model.graph.n_cells):
        elements = Normal(decoder(inputs, torch.tensor(c)).mean, scale).log_prob(batch.values[m])
        measured = batch.observed[m] & present.reshape(-1, *[1] * len(SHAPES[m]))
        columns.append((elements * measured).flatten(1).sum(-1))
    return WEIGHTS[m] * torch.stack(columns, dim=-1)


def test_the_line_of_a_cell_knows_no_z() -> None:
    model = example_with().model
    assert not model.decoders["curve"].depends_on_latent
    assert example_with("both").model.decoders["curve"].depends_on_latent


@each_objective
@each_source
@given_or_not
def test_every_objective_is_its_hand_written_form(
    objective: ObjectiveName, source: ParameterSource, covariates: bool
) -> None:
    example = example_with(source, covariates)
    expected = outcome_of(loss(example, HAND[objective](by_hand(example))), example.leaves())
    guide = example.guide(cell_posterior(objective, example.model))
    for outcome in three_ways(make_elbo(objective), guide, example):
        assert_same(outcome, expected)
    by_pyro = make_elbo(objective, direct=False).differentiable_loss
    assert_same(outcome_of(at_the_noise(by_pyro, example, guide), example.leaves()), expected)
    assert_same(outcome_of(loss(example, from_tensors(objective, example).total), example.leaves()), expected)


@each_source
def test_pyros_own_enumeration_gives_the_same(source: ParameterSource) -> None:
    example = example_with(source)
    expected = outcome_of(loss(example, by_hand(example).collapsed()), example.leaves())
    assert_same(outcome_of(stock(example, example.guide()), example.leaves()), expected)


@each_source
def test_responsibilities_are_those_of_the_weighted_likelihoods(source: ParameterSource) -> None:
    example = example_with(source)
    p, posterior, z = by_hand(example), example.posterior(), example.sample()
    for objective, expected in (("collapsed", p.log_exact), ("meanfield", p.log_geometric), ("paper", p.log_gamma)):
        found = log_responsibilities(objective, example.model, posterior, z, example.batch)  # type: ignore[arg-type]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@each_objective
@pytest.mark.parametrize("filler", [-3.0, 1e30])
def test_filler_changes_nothing_and_gets_a_gradient_of_exactly_zero(objective: ObjectiveName, filler: float) -> None:
    outcomes = []
    for value in (0.0, filler):
        example = example_with(filler=value)
        values = {m: v.clone().requires_grad_() for m, v in example.batch.values.items()}
        example = example._replace(batch=dataclasses.replace(example.batch, values=values))
        guide = example.guide(cell_posterior(objective, example.model))
        leaves = example.leaves() | {f"values.{m}": v for m, v in values.items()}
        found = outcome_of(at_the_noise(make_elbo(objective).differentiable_loss, example, guide), leaves)
        assert found.gradients is not None
        for m in SHAPES:
            assert (found.gradients[f"values.{m}"][~measured(example.batch, m)] == 0).all()
        for m in ("image", "curve"):
            assert (found.gradients[f"values.{m}"][measured(example.batch, m)] != 0).all()
        outcomes.append(found)
    assert outcomes[0].value == outcomes[1].value
    torch.testing.assert_close(outcomes[0].gradients, outcomes[1].gradients, rtol=0, atol=0)


def measured(batch: Batch, m: str) -> Tensor:
    present: Any = batch.present[m]
    rows = present.reshape(-1, *[1] * len(SHAPES[m])).expand(batch.values[m].shape)
    return rows & batch.observed[m] if m in batch.observed else rows


@each_objective
def test_what_is_hidden_from_the_encoders_is_still_explained(objective: ObjectiveName) -> None:
    """The bound with hidden modalities is that of a posterior that does not see them, on the same likelihoods."""
    example = example_with()
    hidden = {"curve": torch.tensor([1, 0, 0, 1, 0, 0, 0]).bool(), "image": torch.tensor([0, 0, 0, 0, 1, 0, 0]).bool()}
    present: dict[str, Any] = dict(example.batch.present)
    absent = {m: mask & ~hidden[m] if m in hidden else mask for m, mask in present.items()}
    posterior = example._replace(batch=dataclasses.replace(example.batch, present=absent)).posterior()
    shown = example._replace(batch=dataclasses.replace(example.batch, hidden=hidden))
    torch.testing.assert_close(shown.posterior().loc, posterior.loc, rtol=0, atol=0)
    expected = outcome_of(loss(shown, HAND[objective](by_hand(shown))), shown.leaves())
    guide = shown.guide(cell_posterior(objective, shown.model))
    for outcome in three_ways(make_elbo(objective), guide, shown):
        assert_same(outcome, expected)
    bound = make_elbo(objective).evaluate(shown.model, FixedNoise(shown.noise)(guide), shown.batch)
    assert bound.terms is not None
    assert (bound.terms.reconstruction["curve"][[0, 3]] != 0).all(), "the decoder of what is hidden is trained"
