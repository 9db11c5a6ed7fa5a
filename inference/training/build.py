"""Model and guide from a configuration and what is known of the modalities."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from guides.covariate_shift import CovariateShift
from guides.encoders import ENCODERS, Encoder, MakeEncoder
from guides.encoders.inputs import features_of
from guides.graph_guide import GraphGuide
from guides.guide import Guide
from inference.objectives.responsibilities import cell_posterior
from inference.training.chosen_components import chosen_fusion, chosen_graph, chosen_mixture, chosen_prior
from inference.training.components import Components
from inference.training.config import DecoderConfig, FitConfig, ModalityConfig
from inference.training.modalities import likelihood_weights
from inference.training.user_components import made, user_component
from models.block_mixture import Mixture
from models.causal_pima import CausalPIMA
from models.decoders import Decoder, DecoderVariance, GaussianDecoder, mlp_decoder
from models.decoders.likelihoods import (
    BernoulliLikelihood,
    CategoricalLikelihood,
    Likelihood,
    LikelihoodDecoder,
    LikelihoodName,
    NegativeBinomialLikelihood,
    PoissonLikelihood,
    StudentTLikelihood,
)
from models.decoders.network_names import is_network, load_network
from models.decoders.physics import PhysicsDecoder, PhysicsLaw, load_law
from models.graph import BayesianGraph
from models.modality import Modality
from models.user_code import names_user_code

__all__ = ["Supplied", "build", "build_stand_ins", "latent_size"]

Modalities = Mapping[str, Modality]
Supplied = Mapping[str, PhysicsLaw | Decoder]

_STAND_IN_SIZES = (16, 32, 64)


def build(
    config: FitConfig,
    modalities: Modalities,
    supplied: Supplied | None = None,
    mean_covariates: Tensor | None = None,
    components: Components | None = None,
) -> tuple[CausalPIMA, Guide]:
    """The model and the guide that a configuration describes, initialised from torch's global generator.

    Args:
        config: The configuration, with an entry for every modality.
        modalities: What is known of every modality.
        supplied: Physics laws or decoders that take the place of the configured ones, by modality.
        mean_covariates: Shares of the levels of the covariates `[V]`, or None.
        components: Objects that take the place of other configured components.

    Raises:
        ValueError: Components of a user's own that are not there, fail, or are something else.
    """
    objects = components or Components()
    objects.check(config)
    prior = chosen_prior(config, objects)
    graph, mixture = chosen_graph(config, prior, objects), chosen_mixture(config, prior, tuple(modalities))
    n_covariates = 0 if mean_covariates is None else len(mean_covariates)
    sizes = {name: latent_size(mixture, name) for name in modalities}
    decoders = {
        name: _decoder(
            config.modality[name].decoder,
            modality,
            mixture.n_levels(name),
            sizes[name] + n_covariates,
            (supplied or {}).get(name),
        )
        for name, modality in modalities.items()
    }
    weights = likelihood_weights(config, modalities)
    latent_prior = None if prior.latent is None else prior.latent(config)
    facts = graph, mixture, decoders, tuple(config.nodes)
    model = CausalPIMA(*facts, weights=weights, mean_covariates=mean_covariates, latent_prior=latent_prior)
    return model, _guide(config, modalities, model, objects)


def latent_size(mixture: Mixture, name: str) -> int:
    """Dimension of what a modality sees of Z: of all of it, or of a block."""
    return mixture.part(name, torch.empty(mixture.latent_dim)).shape[-1]


def _guide(config: FitConfig, modalities: Modalities, model: CausalPIMA, objects: Components) -> Guide:
    graph, sizes = model.graph, {name: latent_size(model.mixture, name) for name in modalities}
    encoders = {n: _encoder(config.modality[n], m, sizes[n], objects.encoders.get(n)) for n, m in modalities.items()}
    posterior = cell_posterior(config.objective, model)
    shift = _covariate_shift(config, modalities, model.mean_covariates)
    parts = (encoders, config.guide.prior_expert, posterior, model.node_names)
    graph_guide = GraphGuide(graph) if isinstance(graph, BayesianGraph) else None
    fusion = chosen_fusion(config, len(encoders), next(iter(sizes.values())), objects)
    blocks = bool(config.mask)
    return Guide(*parts, covariate_shift=shift, blocks=blocks, graph_guide=graph_guide, fusion=fusion)


def _covariate_shift(config: FitConfig, modalities: Modalities, mean_covariates: Tensor | None) -> CovariateShift:
    """For modalities of real numbers; counts, codes and the like have no residuals."""
    if mean_covariates is None:
        return CovariateShift({}, 0)
    continuous = ("normal", "student_t")
    shapes = {n: m.event_shape for n, m in modalities.items() if config.modality[n].decoder.likelihood in continuous}
    return CovariateShift(shapes, len(mean_covariates))


def build_stand_ins(config: FitConfig, modalities: Modalities, model: CausalPIMA) -> nn.ModuleDict:
    """A network of Z for every decoder that does not depend on Z, for pretraining."""
    n_covariates = 0 if model.mean_covariates is None else len(model.mean_covariates)
    return nn.ModuleDict(
        {
            name: mlp_decoder(
                latent_size(model.mixture, name) + n_covariates,
                modalities[name].event_shape,
                _STAND_IN_SIZES,
                _variance(config.modality[name].decoder, None),
            )
            for name, decoder in model.decoders.items()
            if not decoder.depends_on_latent
        }
    )


def _encoder(
    config: ModalityConfig, modality: Modality, latent_dim: int, supplied: Encoder | MakeEncoder | None
) -> Encoder:
    features = features_of(config.decoder.likelihood, modality.n_categories)
    facts = (modality.event_shape, config.encoder.sizes, latent_dim, modality.has_gaps, features)
    setting, kind = f"modality.{modality.name}.encoder", config.encoder.kind
    if supplied is not None:
        return made(f"components.encoders {modality.name}", supplied, Encoder, facts)
    if names_user_code(kind):
        return made(f"{setting}.kind {kind}", user_component(f"{setting}.kind", kind, Encoder), Encoder, facts)
    try:
        return ENCODERS[kind](*facts)
    except ValueError as error:
        raise ValueError(f"modality.{modality.name}: {error}; choose another encoder.kind, for example mlp") from error


def _decoder(
    config: DecoderConfig, modality: Modality, n_cells: int, n_inputs: int, supplied: PhysicsLaw | Decoder | None
) -> Decoder:
    if isinstance(supplied, Decoder):
        return copy.deepcopy(supplied)
    if supplied is None and is_network(config.kind):
        return _network_decoder(config, modality, n_cells if config.per_cell else None, n_inputs)
    law = supplied or load_law(config.kind, config.options)
    variance = _variance(config, modality.event_shape)
    return PhysicsDecoder(law, modality, n_cells, variance, n_inputs, config.source, config.sizes)


def _network_decoder(config: DecoderConfig, modality: Modality, n_heads: int | None, n_inputs: int) -> Decoder:
    shape, make = modality.event_shape, load_network(config.kind)
    if config.likelihood == "normal":
        network = make(n_inputs, shape, config.sizes, n_heads or 1, 1)
        return GaussianDecoder(*network, shape, _variance(config, shape), n_heads)
    likelihood = _LIKELIHOODS[config.likelihood](modality)
    network = make(n_inputs, shape, config.sizes, n_heads or 1, likelihood.n_outputs)
    return LikelihoodDecoder(*network, shape, likelihood, n_heads)


def _variance(config: DecoderConfig, event_shape: Sequence[int] | None) -> DecoderVariance:
    elements = event_shape if config.variance_per == "element" else None
    return DecoderVariance(config.variance, config.variance_initial, config.variance_floor, elements=elements)


def _log_rate(modality: Modality) -> float:
    return math.log(max(modality.mean, 1e-3))


_LIKELIHOODS: Mapping[LikelihoodName, Callable[[Modality], Likelihood]] = {
    "student_t": lambda _: StudentTLikelihood(),
    "bernoulli": lambda _: BernoulliLikelihood(),
    "categorical": lambda modality: CategoricalLikelihood(modality.n_categories),
    "poisson": lambda modality: PoissonLikelihood(_log_rate(modality)),
    "negative_binomial": lambda modality: NegativeBinomialLikelihood(_log_rate(modality)),
}
