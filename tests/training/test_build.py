"""Model and guide from a configuration and the shapes of the data."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest
import torch
from tiny_fits import settings

from causalpima.inference.training.build import build, build_stand_ins
from causalpima.inference.training.config import DecoderConfig, EncoderConfig, ModalityConfig
from causalpima.models.batch import Batch, Modality
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.likelihoods import LikelihoodDecoder, LikelihoodName
from causalpima.models.decoders.networks import GaussianDecoder, mlp_decoder
from causalpima.models.decoders.physics.decoder import ParameterSource, PhysicsDecoder
from causalpima.models.decoders.physics.laws import LAWS, PowerLaw, load_law
from causalpima.models.graph.hodge import HodgeGraph

SHAPES: dict[str, tuple[int, ...]] = {"image": (8, 9, 3), "curve": (16,), "table": (5,)}
MODALITIES = {name: Modality(name, torch.Size(shape)) for name, shape in SHAPES.items()}
NETWORKS = {
    "image": ModalityConfig(EncoderConfig("convolutional", (4, 8)), DecoderConfig("convolutional", (8, 4, 4))),
    "curve": ModalityConfig(EncoderConfig("curve", (4, 8)), DecoderConfig("mlp", (8,))),
    "table": ModalityConfig(EncoderConfig("mlp", (8,)), DecoderConfig("mlp", (8,), per_cell=True)),
}


@pytest.mark.parametrize("latent_dim", [1, 3])
@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
def test_every_kind_of_network_fits_its_modality(objective: str, latent_dim: int) -> None:
    config = settings(objective=objective, nodes={"a": 2, "b": 3}, modality=NETWORKS, model__latent_dim=latent_dim)
    model, guide = build(config, MODALITIES)
    batch = Batch.whole({name: torch.randn(4, *shape) for name, shape in SHAPES.items()})
    posterior = guide.encode(batch)
    assert posterior.loc.shape == (4, latent_dim)
    cell = torch.arange(6).unsqueeze(-1)
    for name, decoder in model.decoders.items():
        drawn = decoder(posterior.loc, cell)
        assert drawn.event_shape == SHAPES[name]
        assert drawn.batch_shape == ((6, 4) if name == "table" else (4,))
    assert (guide.cell_posterior is None) == (objective == "collapsed")


def test_names_sizes_and_settings_arrive() -> None:
    config = settings(
        nodes={"type": 2, "response": 3},
        model__covariance="diagonal",
        guide__prior_expert=True,
        graph__temperature_start=0.7,
        graph__edge_rate=0.3,
        modality={
            "table": ModalityConfig(EncoderConfig(sizes=(7,)), DecoderConfig(variance="fixed", variance_initial=2.0))
        },
    )
    model, guide = build(config, {"table": MODALITIES["table"]})
    assert model.node_names == ("type", "response")
    assert (model.graph.outcomes, model.mixture.n_cells, model.mixture.covariance_kind) == ((2, 3), 6, "diagonal")
    assert isinstance(model.graph, HodgeGraph)
    assert float(model.graph.temperature) == pytest.approx(0.7)
    assert model.graph.edge_rate == 0.3
    assert guide.prior_expert
    decoder: Any = model.decoders["table"]
    assert float(decoder.variance.training_variance()) == 2.0
    assert {tuple(p.shape) for p in guide.parameters()} >= {(7, 5), (7,)}


def test_the_generator_alone_decides_the_start() -> None:
    def parameters(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        model, guide = build(settings(modality=NETWORKS), MODALITIES)
        return torch.cat([p.detach().reshape(-1) for p in (*model.parameters(), *guide.parameters())])

    assert torch.equal(parameters(3), parameters(3))
    assert not torch.equal(parameters(3), parameters(4))


# Every likelihood, laws, and decoders of one's own

COUNTS = dataclasses.replace(MODALITIES["table"], n_categories=3, mean=2.5)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("per_cell", [False, True])
@pytest.mark.parametrize("likelihood", get_args(LikelihoodName))
def test_every_likelihood_has_a_decoder_and_an_encoder(likelihood: LikelihoodName, per_cell: bool, gaps: bool) -> None:
    decoder = DecoderConfig("mlp", (8,), per_cell, likelihood)
    config = settings(modality={"table": ModalityConfig(EncoderConfig("mlp", (8,)), decoder)})
    model, guide = build(config, {"table": dataclasses.replace(COUNTS, has_gaps=gaps)})
    value = torch.randint(2, (4, 5)).double()
    observed = {"table": torch.rand(4, 5) < 0.7} if gaps else {}
    batch = dataclasses.replace(Batch.whole({"table": value}), observed=observed)
    latent = guide.encode(batch).loc
    given = model.likelihood("table", latent, torch.arange(4).unsqueeze(-1), batch)
    assert given.log_prob(value).shape == ((4, 4) if per_cell else (4,))
    assert given.log_prob(value).isfinite().all()
    built: Any = model.decoders["table"]
    assert isinstance(built, GaussianDecoder if likelihood == "normal" else LikelihoodDecoder)
    assert likelihood == "normal" or type(built.likelihood).__name__ == KINDS_OF[likelihood]
    first = next(module for module in guide.encoders["table"].modules() if isinstance(module, torch.nn.Linear))
    n_channels = (3 if likelihood == "categorical" else 1) + gaps
    assert first.in_features == 5 * n_channels, "an indicator per category, and the mask"


KINDS_OF = {
    "student_t": "StudentTLikelihood",
    "bernoulli": "BernoulliLikelihood",
    "categorical": "CategoricalLikelihood",
    "poisson": "PoissonLikelihood",
    "negative_binomial": "NegativeBinomialLikelihood",
}


@pytest.mark.parametrize("likelihood", ["poisson", "negative_binomial"])
def test_counts_begin_at_their_mean(likelihood: LikelihoodName) -> None:
    decoder = DecoderConfig("mlp", (8,), likelihood=likelihood)
    config = settings(modality={"table": ModalityConfig(EncoderConfig("mlp", (8,)), decoder)})
    model, _ = build(config, {"table": dataclasses.replace(COUNTS, mean=1000.0)})
    means = model.decode("table", torch.zeros(1, 2), torch.zeros(1).long()).mean
    assert ((means > 300) & (means < 3000)).all()


CURVE = dataclasses.replace(MODALITIES["curve"], kind="curve", positions=torch.linspace(0, 1, 16))


@pytest.mark.parametrize("source", ["cell", "latent", "both"])
@pytest.mark.parametrize("kind", [*LAWS, "models.decoders.physics.laws:Linear"])
def test_every_law(kind: str, source: ParameterSource) -> None:
    entry = ModalityConfig(EncoderConfig("mlp", (8,)), DecoderConfig(kind, (8,), source=source))
    config = settings(modality={"curve": entry})
    model, _ = build(config, {"curve": CURVE}, mean_covariates=torch.tensor([0.5, 0.5]))
    decoder: Any = model.decoders["curve"]
    assert isinstance(decoder, PhysicsDecoder)
    assert isinstance(decoder.law, type(load_law(kind, {})))
    drawn = model.decode("curve", torch.randn(3, 2), torch.arange(4).unsqueeze(-1))
    assert drawn.mean.shape == ((3, 16) if source == "latent" else (4, 3, 16))
    stand_ins = build_stand_ins(config, {"curve": CURVE}, model)
    assert list(stand_ins) == (["curve"] if source == "cell" else [])


def test_options_of_a_law_arrive() -> None:
    decoder = DecoderConfig("linear", options={"through_origin": True})
    model, _ = build(settings(modality={"curve": ModalityConfig(EncoderConfig(), decoder)}), {"curve": CURVE})
    built: Any = model.decoders["curve"]
    assert built.law.through_origin


def test_a_law_that_is_supplied_takes_the_place_of_the_network_with_its_settings() -> None:
    decoder = DecoderConfig("mlp", (8,), variance="fixed", variance_initial=0.3)
    config = settings(modality={"curve": ModalityConfig(EncoderConfig("mlp", (8,)), decoder)})
    law = PowerLaw()
    model, _ = build(config, {"curve": CURVE}, {"curve": law})
    built: Any = model.decoders["curve"]
    assert isinstance(built, PhysicsDecoder)
    assert isinstance(built.law, PowerLaw)
    assert float(built.variance.training_variance()) == pytest.approx(0.3)
    assert built.source == "cell"


def test_a_decoder_that_is_supplied_is_copied() -> None:
    mine = mlp_decoder(2, (5,), (3,), DecoderVariance("learned", 0.4))
    model, _ = build(settings(modality={"table": NETWORKS["table"]}), {"table": COUNTS}, {"table": mine})
    built = model.decoders["table"]
    assert isinstance(built, GaussianDecoder)
    assert built is not mine
    pairs = list(zip(built.parameters(), mine.parameters(), strict=True))
    assert all(torch.equal(one, other) and one.data_ptr() != other.data_ptr() for one, other in pairs)


@pytest.mark.parametrize("n_covariates", [0, 3])
def test_decoders_see_covariates_and_encoders_do_not(n_covariates: int) -> None:
    average = torch.full((n_covariates,), 1 / 3) if n_covariates else None
    torch.manual_seed(0)
    model, guide = build(settings(modality=NETWORKS), MODALITIES, mean_covariates=average)
    without = build(settings(modality=NETWORKS), MODALITIES)[1]
    for name, decoder in model.decoders.items():
        first: Any = next(module for module in decoder.modules() if isinstance(module, torch.nn.Linear))
        assert first.in_features == 2 + n_covariates
        assert model.decode(name, torch.randn(4, 2), torch.zeros(1).long()).event_shape == SHAPES[name]
    assert [p.shape for p in guide.parameters()] == [p.shape for p in without.parameters()]
