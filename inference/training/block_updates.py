"""Closed-form updates of the blocks of a mixture under a mask: each from the samples that have its modality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from inference.training.mixture_updates import MixtureSums, apply_update, moments
from models.batch import Batch
from models.block_mixture import BlockMixture

__all__ = ["BlockSums", "apply_block_update", "block_moments"]


class BlockSums(NamedTuple):
    """Sums over samples, float64.

    Attributes:
        count: Σ_d r_dc of all samples, `[C]`.
        blocks: Per modality, sums of its levels over the samples that have it.
    """

    count: Tensor  # type: ignore[assignment]
    blocks: Mapping[str, MixtureSums]

    def plus(self, other: BlockSums) -> BlockSums:
        """Sums over the samples of both."""
        blocks = {name: sums.plus(other.blocks[name]) for name, sums in self.blocks.items()}
        return BlockSums(self.count + other.count, blocks)


def block_moments(
    mixture: BlockMixture, batch: Batch, responsibilities: Tensor, loc: Tensor, variance: Tensor | None = None
) -> BlockSums:
    """Sums over a batch: r of a level is that of its cells together, zero where the modality is absent.

    Args:
        mixture: Its blocks and levels.
        batch: Which modalities the samples have.
        responsibilities: r, `[B, C]`.
        loc: Draws of z (`collapsed`) or means of q(Z|X) (`meanfield`, `paper`), `[B, J]`.
        variance: Variances of q(Z|X) `[B, J]`, or None for draws.
    """
    r, blocks = responsibilities.double(), {}
    for name in mixture.visible:
        of_levels = mixture.sum_to_levels(name, r) * batch.has(name).unsqueeze(-1)
        spread = None if variance is None else mixture.part(name, variance)
        blocks[name] = moments(of_levels, mixture.part(name, loc), spread)
    return BlockSums(r.sum(0), blocks)


def apply_block_update(mixture: BlockMixture, sums: BlockSums, pseudo_count: float, variance_floor: float) -> None:
    """`apply_update` of every block; a level without samples keeps its Gaussian.

    The objectives that the sums belong to are sums over blocks of what each block's parameters change, so that each
    update is the maximiser for its block.

    Args:
        mixture: Changed in place.
        sums: Of all samples.
        pseudo_count: κ > 0.
        variance_floor: Smallest variance in any direction.
    """
    for name, of_block in sums.blocks.items():
        apply_update(mixture.block(name), of_block, pseudo_count, variance_floor)
