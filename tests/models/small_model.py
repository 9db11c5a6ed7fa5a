"""A small model, guide and batch: N1 -> N2, an image, and a curve that some samples lack."""

from __future__ import annotations

import torch

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.guide import Guide
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import Covariance, GaussianMixture
from causalpima.models.program import CausalPIMA, CellSites

N, LATENT, OUTCOMES = 5, 2, (2, 3)
SHAPES = {"image": (3, 2), "curve": (4,)}
VARIANCES = {"image": 0.5, "curve": 0.3}


def make_model(
    sites: CellSites = "cells", covariance: Covariance = "full", several: bool = True, seed: int = 0
) -> CausalPIMA:
    """N1 -> N2 with a soft edge; the image from Z alone, the curve with one head per cell."""
    torch.manual_seed(seed)
    graph = HodgeGraph(OUTCOMES, temperature=0.5)
    graph.node_score.data = torch.tensor([-0.4, 0.6])
    graph.conditional_logits.data.mul_(15)
    mixture = GaussianMixture(6, LATENT, covariance)
    if several:
        cell = torch.tensor([3, 0, 1, 2, 3, 4, 5, 3, 1])
        scale = 0.5 + torch.rand(9, LATENT)
        share = torch.zeros(9)
        for c in range(6):
            share[cell == c] = torch.log_softmax(torch.randn(int((cell == c).sum())), 0)
        tril = torch.diag_embed(scale) + 0.5 * torch.tril(torch.randn(9, LATENT, LATENT), -1)
        mixture.replace(torch.randn(9, LATENT), tril if covariance == "full" else scale, cell, share)
    decoders = {
        "image": mlp_decoder(LATENT, SHAPES["image"], (5,), DecoderVariance("learned", VARIANCES["image"])),
        "curve": mlp_decoder(LATENT, SHAPES["curve"], (5,), DecoderVariance("learned", VARIANCES["curve"]), n_cells=6),
    }
    return CausalPIMA(graph, mixture, decoders, sites=sites)


def make_batch(n_samples: int = N) -> Batch:
    values = {name: torch.randn(N, *shape) for name, shape in SHAPES.items()}
    present = {"image": None, "curve": torch.tensor([True, True, False, True, False])}
    return Batch(values, present, torch.arange(N), n_samples)


def make_guide(seed: int = 0) -> Guide:
    torch.manual_seed(seed)
    return Guide({name: mlp_encoder(shape, (5,), LATENT) for name, shape in SHAPES.items()})
