"""A small model under a mask: three nodes, three modalities of two nodes each, of which some samples lack some."""

from __future__ import annotations

import torch
from masked_mixture import LATENT, OUTCOMES, PRESENT, N, make_mixture
from torch import Tensor

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.guide import CellPosterior, Guide
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import Covariance
from causalpima.models.program import CausalPIMA, CellSites

SHAPES = {"image": (3, 2), "curve": (4,), "probe": (2,)}


def make_model(sites: CellSites = "cells", covariance: Covariance = "full", seed: int = 0) -> CausalPIMA:
    """The image from its block alone, the curve with one head per level, the probe from its block alone."""
    torch.manual_seed(seed)
    graph = HodgeGraph(OUTCOMES, temperature=0.5)
    graph.node_score.data = torch.tensor([-0.4, 0.6, 0.1])
    graph.conditional_logits.data.mul_(15)
    mixture = make_mixture(covariance)
    decoders = {
        name: mlp_decoder(
            LATENT,
            shape,
            (5,),
            DecoderVariance("learned", 0.4),
            n_cells=mixture.n_levels(name) if name == "curve" else None,
        )
        for name, shape in SHAPES.items()
    }
    return CausalPIMA(graph, mixture, decoders, sites=sites)


def make_guide(posterior: CellPosterior | None = None, sites: CellSites = "cells", seed: int = 0) -> Guide:
    torch.manual_seed(seed)
    encoders = {name: mlp_encoder(shape, (5,), LATENT) for name, shape in SHAPES.items()}
    return Guide(encoders, cell_posterior=posterior, node_names=("N1", "N2", "N3"), sites=sites, blocks=True)


def make_batch(complete: bool = False, seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    values: dict[str, Tensor] = {m: torch.randn(N, *shape, generator=generator) for m, shape in SHAPES.items()}
    return Batch(values, dict.fromkeys(SHAPES) if complete else dict(PRESENT), torch.arange(N), N)
