"""What decoders on N alone know of each cell, fitted to its samples at once instead of by gradient steps."""

from __future__ import annotations

import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.data.weighted_means import weighted_means
from inference.training.state import TrainingState

__all__ = ["fit_cells"]


@torch.no_grad()
def fit_cells(state: TrainingState, data: TensorData, responsibilities: Tensor) -> None:
    """Let every decoder that depends on N alone fit its cells, or levels under a mask (`Decoder.update_cells`).

    Args:
        state: Decoders are changed.
        data: The training samples.
        responsibilities: q(N|X), `[n, C]`.
    """
    for name, decoder in state.decoders.items():
        if decoder.depends_on_cell and not decoder.depends_on_latent:
            of_levels = state.model.mixture.sum_to_levels(name, responsibilities)
            decoder.update_cells(*weighted_means(data, name, of_levels))
