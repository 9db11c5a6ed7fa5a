"""Fusion of unimodal encoders: mixtures of experts, and of products of experts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from guides.encoders.base import GaussianParameters
from guides.fusion.base import Fusion
from guides.fusion.presence import any_present, keep, refuse_empty
from guides.fusion.product import product_of_experts
from guides.mixture_parameters import MixtureParameters
from guides.posterior import LatentPosterior

__all__ = ["MOST_MODALITIES", "MixtureOfProducts", "mixture_of_experts", "mixture_of_products"]

MOST_MODALITIES = 8


class MixtureOfProducts(Fusion):
    r"""q(Z | X) = 1/|S(X)| Σ_{A in S(X)} q_A(Z | X), with products q_A ∝ ∏_{m in A} q(Z | X_m).

    S(X) are those sets of modalities in S all of which a sample has. S has single modalities (MMVAE, Shi et al. 2019)
    or all sets of them (MoPoE, Sutter et al. 2021). Every product has the prior expert N(0, 1) if there is one, and a
    sample without any modality has that alone.

    Args:
        subsets: S, positions of modalities; every single one is among them.
        prior_expert: Whether N(0, 1) is one more expert of every product.
    """

    teaches_alone = True

    def __init__(self, subsets: Sequence[tuple[int, ...]], prior_expert: bool = False) -> None:
        super().__init__()
        self.subsets, self.prior_expert = tuple(subsets), prior_expert

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> LatentPosterior:
        """See `Fusion.forward`.

        Raises:
            ValueError: A sample without any modality, and no prior expert.
        """
        if len(self.subsets) == 1:
            return product_of_experts(experts, present, self.prior_expert)
        if not self.prior_expert:
            refuse_empty("mixture of experts", present)
        shown = [keep(expert, mask) for expert, mask in zip(experts, present, strict=True)]
        parts = [self._product([shown[m] for m in subset]) for subset in self.subsets]
        counts = [self._has(subset, experts[0].loc, present) for subset in self.subsets]
        if self.prior_expert and all(mask is not None for mask in present):
            parts.append(GaussianParameters(torch.zeros_like(shown[0].loc), torch.zeros_like(shown[0].loc)))
            counts.append(~any_present(present, experts[0].loc))
        loc, log_variance = (torch.stack(values, dim=-2) for values in zip(*parts, strict=True))
        count = torch.stack(counts, dim=-1).to(loc)
        return MixtureParameters(loc, log_variance, (count / count.sum(-1, keepdim=True)).log())

    def _product(self, experts: Sequence[GaussianParameters]) -> GaussianParameters:
        return product_of_experts(experts, [None] * len(experts), self.prior_expert)

    @staticmethod
    def _has(subset: tuple[int, ...], like: Tensor, present: Sequence[Tensor | None]) -> Tensor:
        """Which samples have all of these modalities, bool `[*batch]`."""
        has = torch.ones_like(like[..., 0], dtype=torch.bool)
        for mask in (present[m] for m in subset):
            has = has if mask is None else has & mask
        return has


def mixture_of_experts(n_modalities: int, latent_dim: int, prior_expert: bool) -> MixtureOfProducts:
    """One Gaussian per modality that a sample has, weighted alike; arguments as `MakeFusion` has them."""
    return MixtureOfProducts([(m,) for m in range(n_modalities)], prior_expert)


def mixture_of_products(n_modalities: int, latent_dim: int, prior_expert: bool) -> MixtureOfProducts:
    """One Gaussian per non-empty set of modalities that a sample has, weighted alike.

    Raises:
        ValueError: More than `MOST_MODALITIES`: there are 2^M - 1 sets of M of them.
    """
    if n_modalities > MOST_MODALITIES:
        raise ValueError(
            f"guide.fusion: expected at most {MOST_MODALITIES} modalities for mopoe, which has a Gaussian for each of "
            f"the 2^M - 1 sets of them, got {n_modalities}; use poe or moe"
        )
    subsets = [s for size in range(1, n_modalities + 1) for s in combinations(range(n_modalities), size)]
    return MixtureOfProducts(subsets, prior_expert)
