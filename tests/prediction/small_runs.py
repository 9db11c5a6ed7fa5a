"""Runs that were never trained: a curve and a vector, weights at random, and a linear Gaussian one that is exact."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder
from causalpima.guides.guide import Guide
from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.training.build import build
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    FitConfig,
    GuideConfig,
    ModalityConfig,
    ModelConfig,
)
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.prepared_run import RunDescription
from causalpima.models.batch import Modality, Standardisation
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

__all__ = ["POSITIONS", "linear_gaussian_run", "random_run", "samples"]

POSITIONS = np.array([0.0, 0.5, 1.0, 1.5])
_SHAPES = {"curve": (4,), "vector": (3,)}


def random_run(
    latent_dim: int = 2,
    decoder: Mapping[str, Any] | None = None,
    standardisation: Standardisation | None = None,
    levels: Mapping[str, tuple[str, ...]] | None = None,
    weight: float = 1.0,
    unequal: bool = False,
    **changes: Any,
) -> FittedRun:
    """Four cells, one of two Gaussians; the curve has the decoder and the standardisation that are given.

    Args:
        latent_dim: J.
        decoder: Settings of the curve's decoder.
        standardisation: Of the curve.
        levels: Of covariates.
        weight: Of the vector.
        unequal: Gaussian decoders report a variance per element that grows by half, beside 0.3 for q(N|X).
        changes: Settings of `FitConfig`.
    """
    small = EncoderConfig(sizes=(5,))
    entries = {
        "curve": ModalityConfig(small, DecoderConfig(**{"sizes": (5,), **(decoder or {})})),
        "vector": ModalityConfig(small, DecoderConfig(sizes=(5,)), weight=weight),
    }
    config = FitConfig(nodes={"A": 2, "B": 2}, model=ModelConfig(latent_dim=latent_dim), modality=entries, **changes)
    modalities = {
        "curve": Modality(
            "curve",
            torch.Size([4]),
            "curve",
            torch.tensor(POSITIONS),
            "strain",
            "mm",
            "MPa",
            standardisation or Standardisation(),
            n_categories=3,
            mean=1.5,
        ),
        "vector": Modality("vector", torch.Size([3]), standardisation=Standardisation(5.0, 2.0)),
    }
    description = RunDescription(config, modalities, dict(levels or {}), {}, "small")
    torch.manual_seed(3)
    covariates = torch.full((description.n_covariates,), 0.5) if levels else None
    model, guide = build(config, modalities, {}, covariates)
    _disturb(model, guide, unequal)
    return FittedRun(model.eval(), guide.eval(), description)


def _disturb(model: CausalPIMA, guide: Guide, unequal: bool) -> None:
    """Clusters that differ and overlap, decoders that follow Z, posteriors of a width that matters."""
    assert isinstance(model.mixture, GaussianMixture)
    latent_dim = model.mixture.latent_dim
    loc = 1.2 * torch.randn(5, latent_dim)
    factor = torch.diag_embed(0.5 + 0.3 * torch.rand(5, latent_dim)) + 0.2 * torch.tril(
        torch.ones(latent_dim, latent_dim), -1
    )
    share = torch.tensor([1.0, 1.0, 1.0, 0.3, 0.7]).log()
    model.mixture.replace(loc, factor, torch.tensor([0, 1, 2, 3, 3]), share)
    with torch.no_grad():
        for parameter in (*model.graph.parameters(), *guide.parameters()):
            parameter.add_(0.3 * torch.randn_like(parameter))
        for encoder in guide.encoders.values():
            last = cast(nn.Linear, cast(nn.Sequential, cast(Encoder, encoder).network)[-1])
            last.bias[latent_dim:] += 1.0  # wide: importance weights have a variance then
        for decoder in model.decoders.values():
            for parameter in decoder.parameters():
                parameter.add_(0.4 * torch.randn_like(parameter))
            if hasattr(decoder, "variance"):
                variance, n = (
                    cast(DecoderVariance, decoder.variance),
                    torch.full(cast(Decoder, decoder).event_shape, 50.0),
                )
                variance.report(0.3)
                if unequal:
                    variance.report_elements(torch.linspace(11.0, 19.0, n.numel()).reshape(n.shape), n)


def samples(n: int = 6, seed: int = 1, counts: bool = False, **changes: Any) -> MultimodalData:
    """Both modalities in all samples but the first two: the vector in the first, the curve in the second.

    Args:
        n: Number of samples.
        seed: Seed of the values.
        counts: Whether the curve is of small whole numbers.
        changes: Fields of `MultimodalData`.
    """
    rng = np.random.default_rng(seed)
    curve = rng.integers(0, 2, (n, 4)).astype(float) if counts else 1.0 + rng.random((n, 4))
    values = {"curve": curve, "vector": 5 + 2 * rng.standard_normal((n, 3))}
    present = {name: np.ones(n, dtype=bool) for name in values}
    if n > 2:
        present["curve"][0] = present["vector"][1] = False
    data = MultimodalData(
        name="new",
        modalities={m: np.where(present[m][:, None], v, 0).astype(np.float32) for m, v in values.items()},
        present=present,
        kinds={"curve": "curve", "vector": "vector"},
        axes={"curve": Axis("strain", POSITIONS, "mm")},
        units={"curve": "MPa"},
    )
    return dataclasses.replace(data, **changes)


def linear_gaussian_run(
    weights: Mapping[str, Tensor], offsets: Mapping[str, Tensor], deviation: Mapping[str, float], latent_dim: int
) -> FittedRun:
    """`x_m = W_m z + b_m + noise`, z standard normal in every cell, and a guide that is the exact posterior.

    `W_m` has orthogonal columns of one length w: then the precision that m adds is `w² / σ²` in every direction.
    """
    modalities = {m: Modality(m, torch.Size([len(b)])) for m, b in offsets.items()}
    config = FitConfig(
        nodes={"A": 2},
        model=ModelConfig(latent_dim=latent_dim),
        guide=GuideConfig(prior_expert=True),
        modality=dict.fromkeys(modalities, ModalityConfig()),
    )
    mixture = GaussianMixture(2, latent_dim)
    mixture.replace(torch.zeros(2, latent_dim), torch.ones(2, latent_dim), torch.arange(2), torch.zeros(2))
    decoders = {m: _linear_decoder(weights[m], offsets[m], deviation[m]) for m in modalities}
    model = CausalPIMA(HodgeGraph((2,)), mixture, decoders, ("A",))
    encoders = {m: _exact_encoder(weights[m], offsets[m], deviation[m]) for m in modalities}
    guide = Guide(encoders, prior_expert=True)
    return FittedRun(model.eval(), guide.eval(), RunDescription(config, modalities, {}, {}, "linear"))


def _linear_decoder(weight: Tensor, offset: Tensor, deviation: float) -> GaussianDecoder:
    head = nn.Linear(weight.shape[1], len(offset))
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(offset)
    return GaussianDecoder(nn.Identity(), head, (len(offset),), DecoderVariance("fixed", deviation**2))


def _exact_encoder(weight: Tensor, offset: Tensor, deviation: float) -> Encoder:
    """N(W^T (x - b) / w², σ² / w²): the likelihood of z, as one factor of a product."""
    n_elements, latent_dim = weight.shape
    square = float(weight[:, 0].square().sum())
    layer = nn.Linear(n_elements, 2 * latent_dim)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[:latent_dim] = weight.T / square
        layer.bias[:latent_dim] = -weight.T @ offset / square
        layer.bias[latent_dim:] = np.log(deviation**2 / square)
    return Encoder(layer)
