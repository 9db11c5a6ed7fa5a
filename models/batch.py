"""A batch of samples, in the one form that model and guide take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some of the samples of a data set.

    Attributes:
        values: Per modality `[batch, *shape]`; rows of absent samples hold finite filler.
        present: Per modality, bool `[batch]`, or None where every sample of the data set has the modality.
        index: Positions of the samples in the data set, `[batch]`.
        n_samples: Size of the whole data set, to which sums over the batch are scaled.
    """

    values: Mapping[str, Tensor]
    present: Mapping[str, Tensor | None]
    index: Tensor
    n_samples: int

    @classmethod
    def whole(cls, values: Mapping[str, Tensor], present: Mapping[str, Tensor | None] | None = None) -> Batch:
        """All samples of a data set as one batch.

        Args:
            values: Per modality `[sample, *shape]`.
            present: Per modality, bool `[sample]` or None (default: every modality is complete).
        """
        first = next(iter(values.values()))
        n = len(first)
        return cls(values, present or dict.fromkeys(values), torch.arange(n, device=first.device), n)

    def __len__(self) -> int:
        return len(self.index)
