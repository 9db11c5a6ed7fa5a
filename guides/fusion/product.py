"""Fusion of unimodal encoders: product of experts in log space."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from guides.encoders.base import GaussianParameters
from guides.fusion.base import Fusion
from guides.fusion.presence import keep_rows, refuse_empty

__all__ = ["ProductOfExperts", "product_of_experts"]


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
