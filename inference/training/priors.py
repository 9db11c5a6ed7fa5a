"""Which prior a configuration asks for: p(N) and p(Z | N), or p(Z) without cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from inference.training.graph_choice import known_of_graph, make_graph
from models.block_mixture import BlockMixture, Mixture
from models.graph import EdgeConstraints, NodeGraph
from models.graph.free import FreeGraph
from models.latent_priors import LatentPrior, LinearSCM, StandardNormal
from models.mixture import Covariance, GaussianMixture
from models.node_mixture import NodeMixture
from models.trainable_mixture import TrainableMixture

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["PRIORS", "PriorChoice"]


@dataclass(frozen=True)
class PriorChoice:
    """How the parts of a prior are made.

    Attributes:
        graph: p(N).
        mixture: p(Z | N), from the configuration and the names of the modalities in the order of the encoders.
        latent: p(Z) without cells, which is trained in the place of both; None: there is none.
    """

    graph: Callable[[FitConfig], NodeGraph]
    mixture: Callable[[FitConfig, tuple[str, ...]], Mixture]
    latent: Callable[[FitConfig], LatentPrior] | None = None


def _cells(config: FitConfig, modalities: tuple[str, ...]) -> Mixture:
    """One for all of Z, or a block per modality in the order of the encoders."""
    settings = config.model.latent_dim, config.model.covariance
    if not config.mask:
        return _gaussians(config)(math.prod(config.outcomes), *settings)
    visible = {name: config.visible[name] for name in modalities}
    return BlockMixture(config.outcomes, visible, *settings, block=_gaussians(config))


def _cells_of_nodes(config: FitConfig, modalities: tuple[str, ...]) -> Mixture:
    """A block of Z per node."""
    return NodeMixture(config.outcomes, config.model.latent_dim, config.model.covariance, _gaussians(config))


def _gaussians(config: FitConfig) -> Callable[[int, int, Covariance], GaussianMixture]:
    """Components that closed forms set, or that gradients move."""
    if config.mixture.updates == "em":
        return GaussianMixture
    settings = config.mixture.pseudo_count, config.mixture.variance_floor
    return partial(TrainableMixture, pseudo_count=settings[0], variance_floor=settings[1])


def _free(config: FitConfig) -> NodeGraph:
    """p(N) with a weight of its own for every cell, in closed form; draws what `make_graph` draws."""
    make_graph(config)
    return FreeGraph(config.outcomes)


def _linear_scm(config: FitConfig) -> LatentPrior:
    """A linear structural equation model on a block of Z per node; L1 and known edges are those of the graph."""
    known = known_of_graph(config)
    constraints = EdgeConstraints(torch.from_numpy(known.forbidden), torch.from_numpy(known.required))
    settings = config.model.latent_dim, config.graph.edge_rate, constraints
    return LinearSCM(tuple(config.nodes), config.outcomes, *settings)


def _cells_of_all_blocks(config: FitConfig, _modalities: tuple[str, ...]) -> Mixture:
    """One Gaussian mixture on the blocks of all nodes together, read out after the training."""
    size = config.model.latent_dim * len(config.nodes)
    return GaussianMixture(math.prod(config.outcomes), size, config.model.covariance)


PRIORS: Mapping[str, PriorChoice] = {
    "dag": PriorChoice(make_graph, _cells),
    "mixture": PriorChoice(_free, _cells),
    "nodewise": PriorChoice(make_graph, _cells_of_nodes),
    "standard": PriorChoice(make_graph, _cells, lambda config: StandardNormal(config.model.latent_dim)),
    "linear_scm": PriorChoice(make_graph, _cells_of_all_blocks, _linear_scm),
}
"""By the name that `model.prior` has. A new one is a file in models/ and a line here (docs/components.md)."""
