"""The cluster read-out of a mixture of blocks: from the embedding to responsibilities of the cells, and back."""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch
from torch import Tensor

from guides.posterior import LatentPosterior
from inference.clusters.masked_em import View, masked_em
from inference.clusters.matching import relabel
from inference.clusters.node_matching import match_nodes, nearest_allowed, nearest_renaming
from inference.clusters.read_out import ReadOut
from inference.data.tensors import TensorData
from inference.labelling.labelling import Labelling
from inference.training.block_updates import BlockSums, apply_block_update, posterior_block_moments
from inference.training.config import FitConfig
from models.block_mixture import BlockMixture
from models.factorised_mixture import FactorisedMixture

__all__ = ["keep_blocks", "read_out_blocks", "renumbered", "write_blocks"]

_PASS_SIZE = 2048


def read_out_blocks(mixture: FactorisedMixture, data: TensorData, loc: np.ndarray, seed: int) -> ReadOut:
    """Cells by expectation-maximisation on all blocks together (`masked_em`): those of modalities, or of nodes.

    Args:
        mixture: Its blocks and levels.
        data: The samples, for which of them have a modality.
        loc: Mean of q(Z|X), `[n, J]`.
        seed: Of the starts.
    """
    return masked_em([_view(mixture, data, name, loc) for name in mixture.visible], seed=seed)


def _view(mixture: FactorisedMixture, data: TensorData, name: str, loc: np.ndarray) -> View:
    given = mixture.block_given(name, data.present)
    is_there = np.ones(len(loc), dtype=bool) if given is None else given.cpu().numpy()
    points = mixture.block_part(name, torch.from_numpy(loc)).numpy()
    return View(points, mixture.block_levels(name).cpu().numpy(), is_there)


def renumbered(found: ReadOut, present: np.ndarray, mixture: FactorisedMixture, config: FitConfig) -> ReadOut:
    """The same read-out with nodes and outcomes as in the model's present cells; see `match_nodes`.

    Args:
        found: What was read out.
        present: q(N|X) of the model's present cells, `[n, C]`.
        mixture: Which nodes its blocks depend on.
        config: The configuration.
    """
    visible = list(mixture.visible.values())
    return relabel(found, match_nodes(present, found.cell_responsibilities, config.outcomes, visible))


def keep_blocks(found: ReadOut, labelling: Labelling, mixture: FactorisedMixture, config: FitConfig) -> np.ndarray:
    """Of what a labeller says of the cells, as much as the blocks of Z leave open, `[C]`.

    Under a mask see `nearest_allowed`. Blocks of nodes leave open which node each of them is, and what its outcomes are
    called; the mixture is told.

    Args:
        found: What was read out.
        labelling: What the labeller says: how well cells agree with each other's numbers, or else one permutation.
        mixture: Its blocks.
        config: The configuration.
    """
    agreement = labelling.agreement
    if agreement is None:
        mass = found.cell_responsibilities.sum(0)
        agreement = np.eye(len(mass))[labelling.permutation] * mass[:, None]
    if isinstance(mixture, BlockMixture):
        return nearest_allowed(agreement, config.outcomes, list(mixture.visible.values()))
    permutation = nearest_renaming(agreement, config.outcomes)
    mixture.relabel(torch.from_numpy(permutation))
    return permutation


@torch.no_grad()
def write_blocks(
    mixture: FactorisedMixture,
    data: TensorData,
    responsibilities: Tensor,
    posterior: LatentPosterior,
    config: FitConfig,
) -> Tensor:
    """Gaussians of the levels from the moments of q(Z|X) under the responsibilities that were read out.

    Args:
        mixture: Its blocks are changed.
        data: The training samples.
        responsibilities: Of the cells, `[n, C]`.
        posterior: q(Z|X).
        config: Settings of the mixture.

    Returns:
        Mass of every cell, `[C]`.
    """
    parts = (
        posterior_block_moments(
            mixture, batch, responsibilities[batch.index], type(posterior)(*(part[batch.index] for part in posterior))
        )
        for batch in data.batches(_PASS_SIZE)
    )
    sums = reduce(BlockSums.plus, parts)
    apply_block_update(mixture, sums, config.mixture.pseudo_count, config.mixture.variance_floor)
    return sums.count
