"""The forms that q(Z | X) has."""

from __future__ import annotations

from typing import TypeAlias

from guides.encoders.base import GaussianParameters
from guides.mixture_parameters import MixtureParameters

__all__ = ["LatentPosterior"]

LatentPosterior: TypeAlias = GaussianParameters | MixtureParameters
"""One Gaussian, or a mixture of them. Both have the moments `loc`, `log_variance` and `scale`, and `draw`,
`log_density`, `entropy_at`, `parts` and `distribution`; both are tuples of tensors `[*batch, ...]`."""
