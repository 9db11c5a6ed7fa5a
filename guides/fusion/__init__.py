"""Fusion of unimodal encoders. A new one is a file here and a line in `FUSIONS` (docs/components.md)."""

from __future__ import annotations

from collections.abc import Mapping

from guides.fusion.base import Fusion, MakeFusion
from guides.fusion.concatenation import ConcatenatedEncodings
from guides.fusion.mixture import MixtureOfProducts, mixture_of_experts, mixture_of_products
from guides.fusion.product import ProductOfExperts, product_of_experts

__all__ = [
    "FUSIONS",
    "MIXTURES",
    "ConcatenatedEncodings",
    "Fusion",
    "MakeFusion",
    "MixtureOfProducts",
    "ProductOfExperts",
    "mixture_of_experts",
    "mixture_of_products",
    "product_of_experts",
]

FUSIONS: Mapping[str, MakeFusion] = {
    "poe": lambda _n_modalities, _latent_dim, prior_expert: ProductOfExperts(prior_expert),
    "moe": mixture_of_experts,
    "mopoe": mixture_of_products,
    "concat": ConcatenatedEncodings,
}
"""By the name that `guide.fusion` has."""

MIXTURES = ("moe", "mopoe")
"""Those whose q(Z | X) is a mixture of Gaussians, which trains every encoder to be right alone."""
