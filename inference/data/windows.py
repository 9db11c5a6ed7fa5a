"""The order in which samples on disk are read: neighbouring samples together, from places drawn at random."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

__all__ = ["windows"]

_NEIGHBOURS = 64


def windows(order: Tensor, batch_size: int, most: int, shuffle: bool) -> Iterator[Tensor]:
    """Positions of the samples, a window at a time; each sample once.

    If all fit into one window that is `order`. Else, shuffled, blocks of 64 neighbours are drawn in random order (by
    torch's global generator), and the samples of each window are shuffled: batches mix samples of many places, and reading
    touches a fraction of the places that single random rows would.

    Args:
        order: All positions, shuffled or not, `[n]`.
        batch_size: A window is a whole number of batches.
        most: About so many samples per window, at least one batch.
        shuffle: Whether the order is random.
    """
    size = max(most // batch_size, 1) * batch_size
    if len(order) <= size or not shuffle:
        yield from order.split(size)
        return
    blocks = torch.arange(len(order)).split(_NEIGHBOURS)
    drawn = torch.cat([blocks[position] for position in torch.randperm(len(blocks)).tolist()])
    for window in drawn.split(size):
        yield window[torch.randperm(len(window))]
