"""How encoders of several modalities become one q(Z | X)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from guides.encoders.base import GaussianParameters
from guides.posterior import LatentPosterior

__all__ = ["Fusion", "MakeFusion"]


class Fusion(nn.Module, ABC):
    """From one Gaussian per modality, q(Z | X_m), to q(Z | X).

    Attributes:
        teaches_alone: Whether training asks every encoder to be right alone, so that samples with one modality need
            nothing else (docs/missing.md).
    """

    teaches_alone = False

    @abstractmethod
    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> LatentPosterior:
        """Fuse a batch.

        Args:
            experts: One Gaussian per modality, `[*batch, J]` each; filler where it is not present.
            present: Per modality, bool `[*batch]`, or None where all samples have it.
        """


MakeFusion = Callable[[int, int, bool], Fusion]
"""Makes a fusion from the number of modalities, the dimension of Z, and whether the prior is one more expert."""
