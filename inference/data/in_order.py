"""Results of batches, put together without holding them twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

__all__ = ["in_order"]


def in_order(parts: Iterable[Sequence[Tensor]], n_samples: int) -> list[Tensor]:
    """Results per batch, one after the other, in one tensor each: as `torch.cat`, without holding them twice.

    Args:
        parts: Per batch, tensors `[batch, ...]`.
        n_samples: Rows of all batches.
    """
    whole: list[Tensor] = []
    start = 0
    for part in parts:
        whole = whole or [value.new_empty(n_samples, *value.shape[1:]) for value in part]
        stop = start + len(part[0])
        for all_rows, value in zip(whole, part, strict=True):
            all_rows[start:stop] = value
        start = stop
    return whole
