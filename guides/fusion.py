"""The forms that q(Z | X) has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import torch
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder, GaussianParameters
from causalpima.guides.graph import MixtureParameters

__all__ = [
    "FUSIONS",
    "MIXTURES",
    "MOST_MODALITIES",
    "ConcatenatedEncodings",
    "Fusion",
    "LatentPosterior",
    "MakeFusion",
    "MixtureOfProducts",
    "ProductOfExperts",
    "any_present",
    "keep",
    "keep_rows",
    "mixture_of_experts",
    "mixture_of_products",
    "product_of_experts",
    "refuse_empty",
]


LatentPosterior: TypeAlias = GaussianParameters | MixtureParameters
"""One Gaussian, or a mixture of them. Both have the moments `loc`, `log_variance` and `scale`, and `draw`,
`log_density`, `entropy_at`, `parts` and `distribution`; both are tuples of tensors `[*batch, ...]`."""


# How encoders of several modalities become one q(Z | X).


class Fusion(nn.Module, ABC):
    """From one Gaussian per modality, q(Z | X_m), to q(Z | X).

    Attributes:
        teaches_alone: Whether training asks every encoder to be right alone, so that samples with one modality need
            nothing else (docs/missing.md).
    """

    teaches_alone = False

    @abstractmethod
    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> LatentPosterior:
        """Fuse a batch.

        Args:
            experts: One Gaussian per modality, `[*batch, J]` each; filler where it is not present.
            present: Per modality, bool `[*batch]`, or None where all samples have it.
        """


MakeFusion = Callable[[int, int, bool], Fusion]
"""Makes a fusion from the number of modalities, the dimension of Z, and whether the prior is one more expert."""


# Which samples have which modality, as fusions ask for it.


def keep(expert: GaussianParameters, mask: Tensor | None) -> GaussianParameters:
    """The expert where it is present, bool `[*batch]` or None for everywhere; else N(0, 1), which gets no gradient."""
    return expert if mask is None else GaussianParameters(*(keep_rows(part, mask, 0.0) for part in expert))


def keep_rows(value: Tensor, mask: Tensor | None, filler: float) -> Tensor:
    """The rows `[*batch, J]` of samples that have a modality, bool `[*batch]` or None for all; else a filler."""
    return value if mask is None else torch.where(mask.unsqueeze(-1), value, filler)


def any_present(present: Sequence[Tensor | None], like: Tensor) -> Tensor:
    """Which samples have a modality, bool `[*batch]`.

    Args:
        present: Per modality, bool `[*batch]`, or None where all samples have it.
        like: `[*batch, J]`.
    """
    masks = [mask for mask in present if mask is not None]
    if len(masks) < len(present) or not masks:
        return torch.ones_like(like[..., 0], dtype=torch.bool)
    return torch.stack(masks).any(0)


def refuse_empty(name: str, present: Sequence[Tensor | None]) -> None:
    """Refuse samples without any modality.

    Args:
        name: What fuses them.
        present: As for `any_present`.

    Raises:
        ValueError: There are such.
    """
    masks = [mask for mask in present if mask is not None]
    if not masks or len(masks) < len(present):
        return
    absent = ~torch.stack(masks).any(0)
    if bool(absent.any()):
        raise ValueError(
            f"{name}: expected at least one modality per sample, got none for {int(absent.sum())} samples; "
            "leave them out or use the prior expert"
        )


# Fusion of unimodal encoders: product of experts in log space.


class ProductOfExperts(Fusion):
    """`product_of_experts` (paper, equation 3).

    Args:
        prior_expert: Add N(0, 1) as one more expert; then samples without any modality are allowed.
    """

    def __init__(self, prior_expert: bool = False) -> None:
        super().__init__()
        self.prior_expert = prior_expert

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> GaussianParameters:
        """See `Fusion.forward`."""
        return product_of_experts(experts, present, self.prior_expert)


def product_of_experts(
    experts: Sequence[GaussianParameters], present: Sequence[Tensor | None], prior_expert: bool = False
) -> GaussianParameters:
    r"""q(Z | X) ∝ ∏_m N(μ_m, σ_m²) over the modalities that are present (paper, equation 3).

    `σ⁻² = Σ_m σ_m⁻²` and `μ = σ² Σ_m μ_m σ_m⁻²`, computed as a softmax over log-precisions, so that no precision
    overflows. An absent expert contributes nothing and gets a gradient of exactly zero.

    Args:
        experts: One Gaussian per modality, `[*batch, J]` each.
        present: Per modality, bool `[*batch]`, or None where all samples have it.
        prior_expert: Add N(0, 1) as one more expert.

    Raises:
        ValueError: A sample without any modality, and no prior expert.
    """
    if not prior_expert:
        refuse_empty("product of experts", present)
    if len(experts) == 1 and present[0] is None and not prior_expert:
        return experts[0]
    loc = torch.stack([keep_rows(e.loc, mask, 0.0) for e, mask in zip(experts, present, strict=True)])
    log_precision = torch.stack(
        [keep_rows(-e.log_variance, mask, -torch.inf) for e, mask in zip(experts, present, strict=True)]
    )
    if prior_expert:
        standard = torch.zeros_like(loc[:1])
        loc, log_precision = torch.cat([loc, standard]), torch.cat([log_precision, standard])
    weight = torch.softmax(log_precision, dim=0)
    return GaussianParameters((weight * loc).sum(0), -torch.logsumexp(log_precision, dim=0))


# Fusion of unimodal encoders: mixtures of experts, and of products of experts.


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


# Fusion of unimodal encoders: a network that sees all of them.


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


FUSIONS: Mapping[str, MakeFusion] = {
    "poe": lambda _n_modalities, _latent_dim, prior_expert: ProductOfExperts(prior_expert),
    "moe": mixture_of_experts,
    "mopoe": mixture_of_products,
    "concat": ConcatenatedEncodings,
}
"""By the name that `guide.fusion` has."""

MIXTURES = ("moe", "mopoe")
"""Those whose q(Z | X) is a mixture of Gaussians, which trains every encoder to be right alone."""
