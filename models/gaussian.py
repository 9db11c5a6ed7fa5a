"""Gaussian log-densities and their expectations under another Gaussian: pure functions.

Components carry `scale_tril` `[K, J, J]` (full covariance) or `scale` `[K, J]` (diagonal); the number of dimensions
tells which.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["covariance", "entropy", "expected_log_density", "floored_cholesky", "log_density"]

LOG_2PI = math.log(2 * math.pi)


def _is_diagonal(loc: Tensor, scale: Tensor) -> bool:
    return scale.dim() == loc.dim()


def log_density(value: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None = None) -> Tensor:
    """log N(value; loc, scale) summed over the last dimension; arguments broadcast.

    Args:
        value: `[*batch, J]`.
        loc: `[*batch, J]`.
        scale: Standard deviations `[*batch, J]`, or Cholesky factors `[*batch, J, J]`.
        present: Bool `[*batch, J]`: the density is the marginal one of these dimensions. They and the others must be
            independent (a Cholesky factor of blocks). None: all.
    """
    if _is_diagonal(loc, scale):
        whitened, log_scale = (value - loc) / scale, scale.log()
    else:
        whitened, log_scale = _whiten(value - loc, scale), scale.diagonal(dim1=-2, dim2=-1).log()
    n_dims = loc.shape[-1] if present is None else present.sum(-1)
    return -0.5 * _sum(whitened.square(), present) - _sum(log_scale, present) - 0.5 * LOG_2PI * n_dims


def expected_log_density(
    q_loc: Tensor, q_scale: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None = None
) -> Tensor:
    r"""E_q log N(z; loc, scale) for q = N(q_loc, diag(q_scale²)) (paper, appendix E, corollary and lemma).

    Diagonal: `-½ Σ_j [log 2π σ̃_j² + σ_j²/σ̃_j² + (μ_j - μ̃_j)²/σ̃_j²]`.
    Full: `-½ [J log 2π + log det Σ̃ + (μ - μ̃)ᵀ Σ̃⁻¹ (μ - μ̃) + tr(Σ̃⁻¹ diag σ²)]`.

    Args:
        q_loc: `[*batch, J]`.
        q_scale: Standard deviations of q, `[*batch, J]`.
        loc: `[*batch, J]`.
        scale: Standard deviations `[*batch, J]`, or Cholesky factors `[*batch, J, J]`.
        present: As for `log_density`.
    """
    at_mean = log_density(q_loc, loc, scale, present)
    if _is_diagonal(loc, scale):
        return at_mean - 0.5 * _sum((q_scale / scale).square(), present)
    precision_diagonal = _inverse(scale).square().sum(-2)
    return at_mean - 0.5 * _sum(precision_diagonal * q_scale.square(), present)


def entropy(
    q_scale: Float[Tensor, "*batch latent"], present: Bool[Tensor, "*batch latent"] | None = None
) -> Float[Tensor, "*batch"]:
    """Entropy of N(., diag(q_scale²)): `½ Σ_j (log 2π σ_j² + 1)`, over the dimensions that are present."""
    n_dims = q_scale.shape[-1] if present is None else present.sum(-1)
    return _sum(q_scale.log(), present) + 0.5 * (LOG_2PI + 1) * n_dims


def covariance(scale: Tensor) -> Tensor:
    """Covariance matrices `[K, J, J]` of components given by `scale` `[K, J]` or `scale_tril` `[K, J, J]`."""
    if scale.dim() == 2:
        return torch.diag_embed(scale.square())
    return scale @ scale.mT


def floored_cholesky(matrix: Tensor, floor: float) -> Tensor:
    """Cholesky factors of covariance matrices `[*batch, J, J]` whose eigenvalues are set to `floor` where below it."""
    values, vectors = torch.linalg.eigh((matrix + matrix.mT) / 2)
    return torch.linalg.cholesky((vectors * values.clamp(min=floor).unsqueeze(-2)) @ vectors.mT)


def _inverse(scale_tril: Tensor) -> Tensor:
    eye = torch.eye(scale_tril.shape[-1], dtype=scale_tril.dtype, device=scale_tril.device)
    return torch.linalg.solve_triangular(scale_tril, eye.expand_as(scale_tril), upper=False)


def _whiten(difference: Tensor, scale_tril: Tensor) -> Tensor:
    return (_inverse(scale_tril) * difference.unsqueeze(-2)).sum(-1)


def _sum(per_dimension: Tensor, present: Tensor | None) -> Tensor:
    """Over the dimensions that are present."""
    return per_dimension.sum(-1) if present is None else torch.where(present, per_dimension, 0.0).sum(-1)
