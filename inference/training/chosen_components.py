"""The components of a configuration: from the tables, from a module of the user's, or the objects in their place."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
from typing import TYPE_CHECKING, Any

from torch import nn

from guides.fusion import FUSIONS, Fusion
from inference.training.components import Components
from inference.training.graph_choice import make_graph
from inference.training.own_graphs import check_known, check_unset
from inference.training.priors import PRIORS, PriorChoice
from inference.training.user_components import made, user_component
from models.block_mixture import BlockMixture, Mixture
from models.distributions import ComponentNormal
from models.graph import BayesianGraph, NodeGraph
from models.latent_priors import LatentPrior
from models.mixture import GaussianMixture
from models.torch_state import own_generators
from models.user_code import UserKind, call_user_code, named_object, names_user_code

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["chosen_fusion", "chosen_graph", "chosen_mixture", "chosen_prior", "needs_no_distillation"]


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
