"""The cluster read-out under a mask: from the blocks of the embedding to responsibilities of the cells, and back."""

from __future__ import annotations

from functools import reduce

import numpy as np
import torch
from torch import Tensor

from guides.posterior import LatentPosterior
from inference.clusters.masked_em import View, masked_em
from inference.clusters.matching import relabel
from inference.clusters.node_matching import match_nodes, nearest_allowed
from inference.clusters.read_out import ReadOut
from inference.data.tensors import TensorData
from inference.labelling.labelling import Labelling
from inference.training.block_updates import BlockSums, apply_block_update, block_moments
from inference.training.config import FitConfig
from models.block_mixture import BlockMixture

__all__ = ["keep_levels", "read_out_blocks", "renumbered", "write_blocks"]

_PASS_SIZE = 2048


def read_out_blocks(mixture: BlockMixture, data: TensorData, loc: np.ndarray, seed: int) -> ReadOut:
    """Cells by expectation-maximisation on the blocks of all modalities together (`masked_em`).

    Args:
        mixture: Its blocks and levels.
        data: The samples, for which of them have a modality.
        loc: Mean of q(Z|X), `[n, J]`.
        seed: Of the starts.
    """
    return masked_em([_view(mixture, data, name, loc) for name in mixture.visible], seed=seed)


def _view(mixture: BlockMixture, data: TensorData, name: str, loc: np.ndarray) -> View:
    present = data.present[name]
    is_there = np.ones(len(loc), dtype=bool) if present is None else present.cpu().numpy()
    cells = torch.arange(mixture.n_cells, device=mixture.level_of_cell.device)
    return View(mixture.part(name, torch.from_numpy(loc)).numpy(), mixture.level(name, cells).cpu().numpy(), is_there)


def renumbered(found: ReadOut, present: np.ndarray, config: FitConfig) -> ReadOut:
    """The same read-out with nodes and outcomes as in the model's present cells; see `match_nodes`.

    Args:
        found: What was read out.
        present: q(N|X) of the model's present cells, `[n, C]`.
        config: The configuration with the mask.
    """
    visible = list(config.visible.values())
    return relabel(found, match_nodes(present, found.cell_responsibilities, config.outcomes, visible))


def keep_levels(found: ReadOut, labelling: Labelling, config: FitConfig) -> np.ndarray:
    """Of what a labeller says of the cells, as much as the mask leaves open, `[C]`; see `nearest_allowed`.

    Args:
        found: What was read out.
        labelling: What the labeller says: how well cells agree with each other's numbers, or else one permutation.
        config: The configuration with the mask.
    """
    agreement = labelling.agreement
    if agreement is None:
        mass = found.cell_responsibilities.sum(0)
        agreement = np.eye(len(mass))[labelling.permutation] * mass[:, None]
    return nearest_allowed(agreement, config.outcomes, list(config.visible.values()))


@torch.no_grad()
def write_blocks(
    mixture: BlockMixture, data: TensorData, responsibilities: Tensor, posterior: LatentPosterior, config: FitConfig
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
        block_moments(
            mixture,
            batch,
            responsibilities[batch.index],
            posterior.loc[batch.index],
            posterior.log_variance[batch.index].exp(),
        )
        for batch in data.batches(_PASS_SIZE)
    )
    sums = reduce(BlockSums.plus, parts)
    apply_block_update(mixture, sums, config.mixture.pseudo_count, config.mixture.variance_floor)
    return sums.count
