"""Fusion of unimodal encoders: a network that sees all of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from guides.encoders.base import Encoder, GaussianParameters
from guides.fusion.base import Fusion
from guides.fusion.presence import any_present, keep, refuse_empty
from guides.fusion.product import product_of_experts

__all__ = ["ConcatenatedEncodings"]

_WIDTH = 64


class ConcatenatedEncodings(Fusion):
    """q(Z | X) = N(μ, diag σ²), μ and log σ² from a network of all encodings and of which of them are there.

    The encodings are what the encoders give, means and log-variances, with zeros for a modality that is absent; they
    are features here, and no posteriors of their own. The network has one hidden layer.

    Args:
        n_modalities: Number of modalities.
        latent_dim: Dimension of Z.
        prior_expert: Multiply with N(0, 1); a sample without any modality has that alone.
    """

    def __init__(self, n_modalities: int, latent_dim: int, prior_expert: bool = False) -> None:
        super().__init__()
        inputs = n_modalities * (2 * latent_dim + 1)
        self.network = Encoder(nn.Sequential(nn.Linear(inputs, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, 2 * latent_dim)))
        self.prior_expert = prior_expert

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> GaussianParameters:
        """See `Fusion.forward`.

        Raises:
            ValueError: A sample without any modality, and no prior expert.
        """
        if not self.prior_expert:
            refuse_empty("concatenated encodings", present)
        fused: GaussianParameters = self.network(torch.cat(list(_features(experts, present)), dim=-1))
        if not self.prior_expert:
            return fused
        return product_of_experts([fused], [any_present(present, fused.loc)], prior_expert=True)


def _features(experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> list[Tensor]:
    """Mean, log-variance, and one or zero for every modality."""
    features = []
    for expert, mask in zip(experts, present, strict=True):
        there = torch.ones_like(expert.loc[..., :1]) if mask is None else mask.unsqueeze(-1).to(expert.loc)
        features += [*keep(expert, mask), there]
    return features
