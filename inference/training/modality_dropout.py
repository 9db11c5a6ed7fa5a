"""Hiding modalities from the encoders while training, so that each learns to do without the others."""

from __future__ import annotations

import dataclasses

import torch

from models.batch import Batch

__all__ = ["hide_modalities"]


def hide_modalities(batch: Batch, probability: float) -> Batch:
    """The batch with present modalities hidden at random; every sample keeps at least one (docs/missing.md).

    Each present modality of each sample is hidden with `probability`; where that would hide all of them, one of them,
    drawn evenly, is seen. What is hidden is still explained by its decoder: the bound stays one, of a posterior that
    sees less. Draws come from torch's global generator on the CPU; probability 0 draws nothing.

    Args:
        batch: The samples.
        probability: In [0, 1).
    """
    if probability == 0 or len(batch.values) == 1:
        return batch
    present = torch.stack([batch.has(name) for name in batch.values])
    hidden = (torch.rand(present.shape) < probability).to(present.device) & present
    order = torch.rand(present.shape).to(present.device).masked_fill(~present, -1.0)
    kept = torch.zeros_like(present).scatter(0, order.argmax(0, keepdim=True), True)
    none_seen = ~(present & ~hidden).any(0)
    hidden = hidden & ~(kept & none_seen)
    return dataclasses.replace(batch, hidden=dict(zip(batch.values, hidden, strict=True)))
