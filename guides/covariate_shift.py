"""What covariates explain of a modality on their own, taken out before it is encoded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

__all__ = ["CovariateShift"]


class CovariateShift(nn.Module):
    r"""`x - B_m [1, c]`: the residual of a linear regression of every element on the covariates.

    A batch that is brighter throughout would else be the first thing that encoders tell apart, and Z would have to
    encode what decoders know already. Any encoder gives a valid bound, so the model is not touched by this. What
    really differs between the batches goes out of the encoders' sight, too.

    Args:
        shapes: Shape of one sample per modality that is shifted.
        n_levels: Number of indicators of levels, V.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]], n_levels: int) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(n_levels, math.prod(shape)))

    def forward(self, name: str, value: Tensor, covariates: Tensor | None) -> Tensor:
        """The modality without what its covariates explain.

        Args:
            name: The modality; those without a regression come back as they are.
            value: `[batch, *event]`.
            covariates: Indicators, `[batch, V]`, or None.
        """
        if covariates is None or name not in self._buffers:
            return value
        return value - (covariates @ getattr(self, name)).reshape(value.shape)

    @torch.no_grad()
    def set_effects(self, name: str, effects: Tensor) -> None:
        """Fix the effects of the levels on a modality, `[V, D]`."""
        getattr(self, name).copy_(effects)
