"""Model and guide from a configuration and what is known of the modalities."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from causalpima.guides.encoders import ENCODERS, Encoder, MakeEncoder, features_of
from causalpima.guides.fusion import FUSIONS, Fusion
from causalpima.guides.graph import GraphGuide
from causalpima.guides.guide import CovariateShift, Guide
from causalpima.inference.data.checks import check_support
from causalpima.inference.data.multimodal import Dimensions, MultimodalData
from causalpima.inference.data.stored import row_blocks
from causalpima.inference.data.tensors import Scale, TensorData
from causalpima.inference.graphs.dags import GraphKnowledge, edge_text
from causalpima.inference.objectives.responsibilities import cell_posterior
from causalpima.inference.training.components import PRIORS, Components, PriorChoice, known_of_graph, make_graph
from causalpima.inference.training.config import DecoderConfig, FitConfig, ModalityConfig
from causalpima.inference.training.user_code import made, user_component
from causalpima.models.batch import Modality
from causalpima.models.block_mixture import BlockMixture, Mixture
from causalpima.models.decoders.base import Decoder, DecoderVariance
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
from causalpima.models.decoders.networks import GaussianDecoder, is_network, load_network, mlp_decoder
from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.law import PhysicsLaw
from causalpima.models.decoders.physics.laws import load_law
from causalpima.models.distributions import ComponentNormal
from causalpima.models.gaussian import own_generators
from causalpima.models.graph.base import EdgeConstraints, NodeGraph
from causalpima.models.graph.bayesian import BayesianGraph
from causalpima.models.graph.table import FreeGraph, TableGraph
from causalpima.models.latent_priors import LatentPrior
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA
from causalpima.models.user_code import UserKind, call_user_code, named_object, names_user_code

__all__ = [
    "Supplied",
    "build",
    "build_stand_ins",
    "check_known",
    "check_unset",
    "chosen_fusion",
    "chosen_graph",
    "chosen_mixture",
    "chosen_prior",
    "describe_modalities",
    "latent_size",
    "likelihood_weights",
    "needs_no_distillation",
    "scales",
]


# What a graph of a user's own has to agree with: what is known of edges, and the setting in whose place it is.


def check_unset(config: FitConfig) -> None:
    """Refuse a graph that is configured beside a prior of one's own that makes another.

    Raises:
        ValueError: There is one.
    """
    kind = config.model.graph
    if kind != "hodge":
        raise ValueError(
            f"model.graph: expected its default hodge with a prior that makes a graph of its own, got {kind}; leave "
            "one of the two out"
        )


def check_known(subject: str, graph: NodeGraph, config: FitConfig) -> None:
    """Refuse a graph that is not told of what is known of edges, and would contradict it without a word.

    A hard graph has its edges from the start. Another one holds them as `constraints`. Free weights claim no edge.

    Args:
        subject: Beginning of the message.
        graph: The graph.
        config: The configuration.

    Raises:
        ValueError: It does not keep to it.
    """
    known = known_of_graph(config)
    if isinstance(graph, FreeGraph) or not (known.forbidden.any() or known.required.any()):
        return
    broken = _broken_edges(graph, known) if isinstance(graph, TableGraph) else _unknown_to(graph, known)
    if broken:
        raise ValueError(
            f"{subject}: expected a graph that keeps to what is known of edges, got {broken}; leave the knowledge out, "
            "or make the graph by a function of the configuration that looks at it (inference/training/components.py)"
        )


def _broken_edges(graph: TableGraph, known: GraphKnowledge) -> str:
    edges = graph.adjacency().cpu().numpy().astype(bool)
    wrong = np.argwhere((edges & known.forbidden) | (~edges & known.required))
    return ", ".join(
        f"{'' if edges[i, j] else 'no '}{edge_text(known.nodes[i], known.nodes[j])}" for i, j in wrong.tolist()
    )


def _unknown_to(graph: NodeGraph, known: GraphKnowledge) -> str:
    constraints = getattr(graph, "constraints", None)
    if isinstance(constraints, EdgeConstraints):
        forbidden, required = (torch.from_numpy(edges) for edges in (known.forbidden, known.required))
        missing = (forbidden & ~constraints.forbidden.cpu()) | (required & ~constraints.required.cpu())
        if not bool(missing.any()):
            return ""
    return f"a {type(graph).__name__} that does not hold it as constraints"


# The components of a configuration: from the tables, from a module of the user's, or the objects in their place.


def chosen_graph(config: FitConfig, prior: PriorChoice, components: Components) -> NodeGraph:
    """p(N). What is configured is made in any case: it draws what later networks depend on.

    Raises:
        ValueError: A prior with a graph of its own beside an object or a setting, an object that is none, or a graph of
            a user's own that does not keep to what is known.
    """
    configured = prior.graph(config)
    if components.graph is None:
        _check_random(configured, config)
        return _of_setting(configured, prior, config)
    if prior.graph is not make_graph:
        raise ValueError(
            f"components.graph: expected none with model.prior {config.model.prior}, which has its own p(N), got one; "
            "leave one of the two out"
        )
    graph = made("components.graph", components.graph, NodeGraph, (config,), (config.outcomes,))
    check_known("components.graph", graph, config)
    return _of_nodes("components.graph", graph, config)


def _of_setting(graph: NodeGraph, prior: PriorChoice, config: FitConfig) -> NodeGraph:
    """The graph that a setting or a prior makes; one of a user's own keeps to what is known."""
    subject = f"model.graph {config.model.graph}"
    if prior.graph is not make_graph and prior not in PRIORS.values():
        check_unset(config)
        check_known("model.prior", graph, config)
    elif names_user_code(config.model.graph):
        check_known(subject, graph, config)
    return _of_nodes(subject, graph, config)


def _check_random(graph: NodeGraph, config: FitConfig) -> None:
    if config.guide.graph == "bayesian" and not isinstance(graph, BayesianGraph):
        raise ValueError(
            f"guide.graph: expected point with a prior that makes a {type(graph).__name__}, got bayesian; that graph "
            "is not random, set guide.graph to point"
        )


def _of_nodes(subject: str, graph: NodeGraph, config: FitConfig) -> NodeGraph:
    if graph.outcomes != config.outcomes:
        raise ValueError(
            f"{subject}: expected outcomes {list(config.outcomes)}, got {list(graph.outcomes)}; make it of the nodes "
            "of the fit"
        )
    return graph


def chosen_mixture(config: FitConfig, prior: PriorChoice, modalities: tuple[str, ...]) -> Mixture:
    """p(Z | N).

    Args:
        config: The configuration.
        prior: What makes it.
        modalities: Names of the modalities, in the order of the encoders.

    Raises:
        ValueError: Blocks of modalities without a mask, or a mask and other blocks.
    """
    mixture = prior.mixture(config, modalities)
    if bool(config.mask) != isinstance(mixture, BlockMixture):
        expected = "a BlockMixture with a mask" if config.mask else "no BlockMixture without a mask"
        raise ValueError(
            f"model.prior: expected {expected}, which has a block of Z per modality, got a {type(mixture).__name__}; "
            "change the mask or the mixture"
        )
    return mixture


def chosen_fusion(config: FitConfig, n_modalities: int, latent_dim: int, components: Components) -> Fusion:
    """How encoders become one.

    Raises:
        ValueError: An object or a name of a user's that is no fusion, or distillation beside one that needs none.
    """
    fusion = _fusion(config, n_modalities, latent_dim, components)
    if fusion.teaches_alone and config.distillation.epochs:
        raise ValueError(
            f"distillation.epochs: expected 0 with {type(fusion).__name__}, which trains every encoder to be right "
            f"alone, got {config.distillation.epochs}; there is nothing to teach, set it to 0"
        )
    return fusion


def needs_no_distillation(config: FitConfig, components: Components) -> bool:
    """Whether the fusion trains every encoder to be right alone; no random numbers are drawn for the answer.

    Raises:
        ValueError: An object or a name of a user's that is no fusion.
    """
    with own_generators([]):
        return _fusion(config, len(config.modality), config.model.latent_dim, components).teaches_alone


def _fusion(config: FitConfig, n_modalities: int, latent_dim: int, components: Components) -> Fusion:
    name, facts = config.guide.fusion, (n_modalities, latent_dim, config.guide.prior_expert)
    if components.fusion is not None:
        fusion: Fusion = made("components.fusion", components.fusion, Fusion, facts)
    elif names_user_code(name):
        fusion = made(f"guide.fusion {name}", user_component("guide.fusion", name, Fusion), Fusion, facts)
    else:
        fusion = FUSIONS[name](*facts)
    return fusion


def chosen_prior(config: FitConfig, components: Components) -> PriorChoice:
    """p(N), p(Z | N) and p(Z).

    Raises:
        ValueError: A name of a user's that is not there or no prior, or a prior without cells beside settings that need
            them.
    """
    name = config.model.prior
    if components.prior is not None:
        return _checked(config, "components.prior", components.prior)
    if names_user_code(name):
        return _checked(config, f"model.prior {name}", named_object(f"model.prior {name}", name, _PRIOR))
    return PRIORS[name]


def _checked(config: FitConfig, subject: str, given: Any) -> PriorChoice:
    """As a prior, if it has cells or the other settings need none: they are those that `standard` goes with."""
    choice = _as_choice(subject, given)
    if choice.latent is not None:
        try:
            dataclasses.replace(config, model=dataclasses.replace(config.model, prior="standard"))
        except ValueError as error:
            raise ValueError(f"{subject} has no cells, as standard has none: {error}") from error
    return choice


def _is_prior(value: object) -> bool:
    is_class = inspect.isclass(value) and issubclass(value, (LatentPrior, GaussianMixture))
    return isinstance(value, PriorChoice) or inspect.isfunction(value) or (is_class and not inspect.isabstract(value))


_PRIOR = UserKind(
    "a prior",
    _is_prior,
    "a PriorChoice, a subclass of LatentPrior or GaussianMixture, or a function that makes a mixture",
    "priors",
    (LatentPrior, GaussianMixture),
)


def _as_choice(subject: str, given: Any) -> PriorChoice:
    """A prior of any form as the parts of one."""
    if isinstance(given, PriorChoice):
        return given
    if isinstance(given, LatentPrior) or (inspect.isclass(given) and issubclass(given, LatentPrior)):
        dag = PRIORS["dag"]
        return PriorChoice(dag.graph, dag.mixture, lambda config: _latent(subject, given, config))
    return PriorChoice(make_graph, lambda config, modalities: _mixture(subject, given, config, modalities))


def _latent(subject: str, given: Any, config: FitConfig) -> LatentPrior:
    prior: LatentPrior = made(subject, given, LatentPrior, (config.model.latent_dim,))
    found = prior.distribution()
    if not isinstance(found, ComponentNormal):
        raise ValueError(
            f"{subject}: expected distribution() to return a ComponentNormal, got a {type(found).__name__}; make one "
            "of mean and standard deviations"
        )
    return prior


def _mixture(subject: str, given: Any, config: FitConfig, modalities: tuple[str, ...]) -> Mixture:
    if isinstance(given, nn.Module):
        result: Any = copy.deepcopy(given)
    elif inspect.isclass(given):
        facts = math.prod(config.outcomes), config.model.latent_dim, config.model.covariance
        names = ("n_cells", "latent_dim", "covariance")
        result = call_user_code(subject, given, *facts, names=names)
    else:
        result = call_user_code(subject, given, config, modalities, names=("config", "modalities"))
    if not isinstance(result, Mixture):
        raise ValueError(f"{subject}: expected it to make a mixture, got {type(result).__name__}")
    return result


# From samples and settings to what encoders and decoders need to know of every modality.


_ROWS_AT_ONCE = 2048


def scales(config: FitConfig) -> dict[str, Scale]:
    """Per modality, how it is standardised; discrete likelihoods take their values as they are."""
    return {name: _scale(entry) for name, entry in config.modality.items()}


def _scale(entry: ModalityConfig) -> Scale:
    if entry.decoder.likelihood not in ("normal", "student_t"):
        return Scale(standardise=False, has_offset=False)
    is_robust = entry.decoder.likelihood == "student_t"
    return Scale(entry.standardise, entry.transform, entry.transform_knee, is_robust)


def describe_modalities(data: MultimodalData, training: TensorData, config: FitConfig) -> dict[str, Modality]:
    """Shapes, positions, units and standardisation.

    Args:
        data: The samples as they came.
        training: The training samples, standardised.
        config: The configuration, with an entry for every modality.

    Raises:
        ValueError: Values that the likelihood of a modality cannot have.
    """
    return {name: _describe(data, training, name, config.modality[name]) for name in data.modalities}


def _describe(data: MultimodalData, training: TensorData, name: str, entry: ModalityConfig) -> Modality:
    parts = torch.arange(training.n_samples, device=training.device).split(_ROWS_AT_ONCE)
    total = sum(float(training.values[name][rows].double().sum()) for rows in parts)
    axis = data.axis(name) if data.kinds[name] == "curve" else None
    named = data.dimensions.get(name) or Dimensions((), ())
    return Modality(
        name=name,
        event_shape=torch.Size(data.modalities[name].shape[1:]),
        kind=data.kinds[name],
        positions=None if axis is None else torch.as_tensor(axis.values, dtype=torch.float64),
        position_name="" if axis is None else axis.name,
        position_unit="" if axis is None else axis.unit,
        unit=data.units.get(name, ""),
        standardisation=training.standardisation[name],
        has_gaps=name in data.observed,
        n_categories=_check_support(data, name, entry),
        mean=total / max(training.n_elements[name], 1),
        dimensions=named.names,
        source_dimensions=named.source,
        coordinates=named.coordinates if axis is None else {},
    )


def _check_support(data: MultimodalData, name: str, entry: ModalityConfig) -> int:
    """The number of categories; block by block, as values may be on disk."""
    values, measured = data.modalities[name], data.measured(name)
    blocks = row_blocks(len(values), values.nbytes // len(values))
    likelihood = entry.decoder.likelihood
    return max(check_support(name, likelihood, values[rows], measured[rows], rows.start) for rows in blocks)


def likelihood_weights(config: FitConfig, modalities: Mapping[str, Modality]) -> dict[str, float]:
    """The power of every likelihood: its `weight`, times mean D / D_m where `likelihood_scaling` is `dimension`."""
    sizes = {name: math.prod(modality.event_shape) for name, modality in modalities.items()}
    mean = sum(sizes.values()) / len(sizes)
    rescaled = config.model.likelihood_scaling == "dimension"
    return {name: config.modality[name].weight * (mean / size if rescaled else 1.0) for name, size in sizes.items()}


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
