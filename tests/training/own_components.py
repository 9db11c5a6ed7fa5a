"""A graph, a prior, a fusion, an encoder and a network of a user's own: one file, as docs/components.md shows it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from causalpima.guides.encoders import ElementFeatures, Encoder, EncoderInput, GaussianParameters
from causalpima.guides.fusion import Fusion, ProductOfExperts
from causalpima.inference.training.components import PriorChoice, make_graph
from causalpima.models.decoders.networks import Network
from causalpima.models.distributions import ComponentNormal
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.table import TableGraph
from causalpima.models.latent_priors import LatentPrior
from causalpima.models.mixture import GaussianMixture

__all__ = [
    "PRIOR",
    "Chain",
    "DoubledPrecision",
    "TaughtAlone",
    "WidePrior",
    "bilinear",
    "narrow_encoder",
    "round_cells",
    "sequential",
    "wide_chain",
]


class Chain(TableGraph):
    """A hard graph in which every node is a cause of the next, with tables in closed form."""

    def __init__(self, outcomes: Sequence[int]) -> None:
        super().__init__(outcomes, torch.diag(torch.ones(len(outcomes) - 1, dtype=torch.bool), 1))


def wide_chain(config: object) -> HodgeGraph:
    """A graph that gradients learn, from another temperature; a function of the configuration."""
    return HodgeGraph(config.outcomes, 2.0)  # type: ignore[attr-defined]


class DoubledPrecision(Fusion):
    """The product of experts as if every modality had been seen twice."""

    def __init__(self, n_modalities: int, latent_dim: int, prior_expert: bool) -> None:
        super().__init__()
        self.product = ProductOfExperts(prior_expert)

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> GaussianParameters:
        """See `Fusion.forward`."""
        return self.product([*experts, *experts], [*present, *present])


class TaughtAlone(DoubledPrecision):
    """It says that training asks every encoder to be right alone."""

    teaches_alone = True


class WidePrior(LatentPrior):
    """N(0, 4 I)."""

    scale: Tensor

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((latent_dim,), 2.0))

    def distribution(self) -> ComponentNormal:
        """See `LatentPrior.distribution`."""
        return ComponentNormal(torch.zeros_like(self.scale), self.scale)


def round_cells(config: object, modalities: tuple[str, ...]) -> GaussianMixture:
    """A mixture whose components have diagonal covariances, whatever the configuration says."""
    return GaussianMixture(4, config.model.latent_dim, "diagonal")  # type: ignore[attr-defined]


PRIOR = PriorChoice(make_graph, round_cells)


def narrow_encoder(
    shape: Sequence[int], sizes: Sequence[int], latent_dim: int, masked: bool, features: ElementFeatures
) -> Encoder:
    """One linear layer."""
    inputs = EncoderInput(features, masked)
    n_inputs = int(torch.Size(shape).numel()) * inputs.n_channels
    return Encoder(nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, 2 * latent_dim)), inputs)


def bilinear(
    latent_dim: int, shape: Sequence[int], sizes: Sequence[int], n_heads: int = 1, n_outputs: int = 1
) -> Network:
    """A linear map of Z and its elements' products with the first."""
    return Network(_WithProducts(), nn.Linear(2 * latent_dim, int(torch.Size(shape).numel()) * n_heads * n_outputs))


def sequential(*_: object) -> nn.Module:
    """A module, which is neither a `Network` nor an `Encoder`."""
    return nn.Sequential(nn.Linear(2, 2))


class _WithProducts(nn.Module):
    def forward(self, latent: Tensor) -> Tensor:
        return torch.cat([latent, latent * latent[..., :1]], dim=-1)
