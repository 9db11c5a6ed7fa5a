"""Closed-form updates of the blocks of a mixture: each from the samples that tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from torch import Tensor

from guides.posterior import LatentPosterior
from inference.training.mixture_updates import MixtureSums, apply_update, moments
from models.batch import Batch
from models.factorised_mixture import FactorisedMixture

__all__ = ["BlockSums", "apply_block_update", "block_moments", "posterior_block_moments"]


class BlockSums(NamedTuple):
    """Sums over samples, float64.

    Attributes:
        count: Σ_d r_dc of all samples, `[C]`.
        blocks: Per block, sums of its levels over the samples that tell of it: under a mask those with its modality.
    """

    count: Tensor  # type: ignore[assignment]
    blocks: Mapping[str, MixtureSums]

    def plus(self, other: BlockSums) -> BlockSums:
        """Sums over the samples of both."""
        blocks = {name: sums.plus(other.blocks[name]) for name, sums in self.blocks.items()}
        return BlockSums(self.count + other.count, blocks)


def block_moments(
    mixture: FactorisedMixture, batch: Batch, responsibilities: Tensor, loc: Tensor, variance: Tensor | None = None
) -> BlockSums:
    """Sums over a batch: r of a level is that of its cells together, zero where nothing tells of the block.

    Args:
        mixture: Its blocks and levels.
        batch: Which modalities the samples have.
        responsibilities: r, `[B, C]`.
        loc: Draws of z (`collapsed`) or means of q(Z|X) (`meanfield`, `paper`), `[B, J]`.
        variance: Variances of q(Z|X) `[B, J]`, or None for draws.
    """
    r, blocks = responsibilities.double(), {}
    for name in mixture.visible:
        of_levels, given = mixture.sum_to_block_levels(name, r), mixture.block_given(name, batch.present)
        of_levels = of_levels if given is None else of_levels * given.unsqueeze(-1)
        spread = None if variance is None else mixture.block_part(name, variance)
        blocks[name] = moments(of_levels, mixture.block_part(name, loc), spread)
    return BlockSums(r.sum(0), blocks)


def posterior_block_moments(
    mixture: FactorisedMixture, batch: Batch, responsibilities: Tensor, posterior: LatentPosterior
) -> BlockSums:
    """Sums over a batch with the moments of q(Z|X), as `posterior_moments` has them.

    Args:
        mixture: Its blocks and levels.
        batch: Which modalities the samples have.
        responsibilities: r, `[B, C]`.
        posterior: q(Z|X).
    """
    sums = (
        block_moments(mixture, batch, weight.unsqueeze(-1) * responsibilities, one.loc, one.log_variance.exp())
        for weight, one in posterior.parts()
    )
    return reduce(BlockSums.plus, sums)


def apply_block_update(mixture: FactorisedMixture, sums: BlockSums, pseudo_count: float, variance_floor: float) -> None:
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
