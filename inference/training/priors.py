"""Which prior a configuration asks for: p(N) and p(Z | N), or p(Z) without cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from inference.training.graph_choice import make_graph
from models.block_mixture import BlockMixture, Mixture
from models.graph import NodeGraph
from models.graph.free import FreeGraph
from models.latent_priors import LatentPrior, StandardNormal
from models.mixture import Covariance, GaussianMixture
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


PRIORS: Mapping[str, PriorChoice] = {
    "dag": PriorChoice(make_graph, _cells),
    "mixture": PriorChoice(_free, _cells),
    "standard": PriorChoice(make_graph, _cells, lambda config: StandardNormal(config.model.latent_dim)),
}
"""By the name that `model.prior` has. A new one is a file in models/ and a line here (docs/components.md)."""
