"""The order in which samples on disk are read: neighbouring samples together, from places drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ["windows"]

_NEIGHBOURS = 64


def windows(n_samples: int, batch_size: int, most: int) -> Iterator[Tensor]:
    """Positions of the samples in random order, by torch's global generator, a window at a time; each sample once.

    If all fit into one window it is the order of samples in memory, `torch.randperm`. Else blocks of 64 neighbours are
    drawn in random order, and the samples of each window are shuffled: batches mix samples of many places, and reading
    touches a fraction of the places that single random rows would.

    Args:
        n_samples: Number of samples, n.
        batch_size: A window is a whole number of batches.
        most: About so many samples per window, at least one batch.
    """
    size = max(most // batch_size, 1) * batch_size
    if n_samples <= size:
        yield torch.randperm(n_samples)
        return
    first = torch.randperm(-(-n_samples // _NEIGHBOURS)) * _NEIGHBOURS
    drawn = (first.unsqueeze(1) + torch.arange(_NEIGHBOURS)).reshape(-1)
    for window in drawn[drawn < n_samples].split(size):
        yield window[torch.randperm(len(window))]
