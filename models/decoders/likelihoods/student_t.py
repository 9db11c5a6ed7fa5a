"""A likelihood with heavy tails, that single outliers do not bend."""

from __future__ import annotations

import torch
from pyro.distributions import StudentT
from torch import Tensor, nn

from models.decoders.likelihoods.base import Likelihood
from models.decoders.likelihoods.limits import inverse_softplus

__all__ = ["MIN_DEGREES_OF_FREEDOM", "StudentTLikelihood"]

MIN_DEGREES_OF_FREEDOM = 2.1


class StudentTLikelihood(Likelihood):
    r"""`p(x) = Γ((ν+1)/2) / (Γ(ν/2) √(νπ) s) (1 + (x - m)² / (ν s²))^{-(ν+1)/2}`; the output is m.

    On the standardised scale; the scale s is learned, one per modality. The variance s² ν / (ν - 2) exists, since ν
    stays above 2.1.

    Args:
        scale: s at the start.
        degrees_of_freedom: ν, or where it starts if it is learned.
        learned: Whether ν is learned.
        scale_floor: Smallest s: without one the network could follow single samples exactly.

    Raises:
        ValueError: `scale` or `degrees_of_freedom` not above its lower bound, or no positive `scale_floor`.
    """

    def __init__(
        self,
        scale: float = 1.0,
        degrees_of_freedom: float = 4.0,
        learned: bool = False,
        scale_floor: float = 1e-2,
    ) -> None:
        super().__init__()
        if not 0 < scale_floor < scale:
            raise ValueError(f"scale: expected 0 < scale_floor < scale, got {scale_floor} and {scale}")
        if degrees_of_freedom <= MIN_DEGREES_OF_FREEDOM:
            raise ValueError(
                f"degrees_of_freedom: expected > {MIN_DEGREES_OF_FREEDOM}, so that there is a variance, "
                f"got {degrees_of_freedom}"
            )
        self.scale_floor = scale_floor
        self.raw_scale = nn.Parameter(torch.tensor(inverse_softplus(scale - scale_floor)))
        raw = torch.tensor(inverse_softplus(degrees_of_freedom - MIN_DEGREES_OF_FREEDOM))
        self.raw_degrees_of_freedom = nn.Parameter(raw, requires_grad=learned)

    @property
    def scale(self) -> Tensor:
        """s, a scalar."""
        return self.scale_floor + nn.functional.softplus(self.raw_scale)

    @property
    def degrees_of_freedom(self) -> Tensor:
        """ν, a scalar."""
        return MIN_DEGREES_OF_FREEDOM + nn.functional.softplus(self.raw_degrees_of_freedom)

    def forward(self, outputs: Tensor) -> StudentT:
        """See `Likelihood.forward`."""
        return StudentT(self.degrees_of_freedom, outputs.squeeze(-1), self.scale, validate_args=False)
