"""Means of a modality over the samples of each cell."""

from __future__ import annotations

import torch
from torch import Tensor

from inference.data.tensors import TensorData

__all__ = ["weighted_means"]

_PASS_SIZE = 2048


def weighted_means(data: TensorData, name: str, responsibilities: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the measured values under q(N|X), and its weight, per cell: `[C, *event]` of float64 each.

    `w_c = Σ_n γ_nc o_n` and `m_c = Σ_n γ_nc o_n x_n / w_c` with o_n = 1 where the element was measured; zero where no
    sample of the cell has it. One pass, batch by batch.

    Args:
        data: The samples.
        name: The modality.
        responsibilities: q(N|X), `[n, C]`.
    """
    total = weight = torch.zeros((), dtype=torch.float64, device=responsibilities.device)
    for batch in data.batches(_PASS_SIZE):
        value, measured = batch.values[name].double(), batch.measured(name).double()
        r = responsibilities[batch.index].double()
        total = total + torch.tensordot(r, measured * value, dims=([0], [0]))
        weight = weight + torch.tensordot(r, measured, dims=([0], [0]))
    return torch.where(weight > 0, total / weight.clamp(min=torch.finfo(torch.float64).tiny), 0.0), weight
