"""A mixture under a mask: three nodes, three modalities of two nodes each, of which some samples lack some."""

from __future__ import annotations

import torch

from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.mixture import Covariance

N, LATENT, OUTCOMES = 6, 2, (2, 3, 2)
VISIBLE = {"image": (0, 1), "curve": (1, 2), "probe": (0, 2)}
PRESENT = {
    "image": torch.tensor([True, True, False, True, False, False]),
    "curve": torch.tensor([True, False, False, True, True, True]),
    "probe": None,
}


def make_mixture(covariance: Covariance = "full") -> BlockMixture:
    """Random Gaussians for every level."""
    mixture = BlockMixture(OUTCOMES, VISIBLE, LATENT, covariance)
    for name in VISIBLE:
        block = mixture.block(name)
        n, scale = block.n_cells, 0.5 + torch.rand(block.n_cells, LATENT)
        tril = torch.diag_embed(scale) + 0.5 * torch.tril(torch.randn(n, LATENT, LATENT), -1)
        block.replace(torch.randn(n, LATENT), tril if covariance == "full" else scale, torch.arange(n), torch.zeros(n))
    return mixture


def make_batch(complete: bool = False) -> Batch:
    """One number per modality."""
    values = {name: torch.zeros(N, 1) for name in VISIBLE}
    return Batch(values, dict.fromkeys(VISIBLE) if complete else dict(PRESENT), torch.arange(N), N)
