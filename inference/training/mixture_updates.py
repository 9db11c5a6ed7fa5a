"""Closed-form updates of the mixture from sums over samples (paper, equation 7, as maximum a posteriori).

Sums are accumulated batch by batch in float64 and can be added across processes; the data are never needed at once.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor

from guides.posterior import LatentPosterior
from models import gaussian
from models.mixture import Covariance, GaussianMixture

__all__ = ["MixtureSums", "apply_update", "log_prior", "moments", "posterior_moments", "reseed"]


class MixtureSums(NamedTuple):
    """Responsibility-weighted counts, first and second moments of K components, float64.

    Attributes:
        count: Σ_d r_dk, `[K]`.
        first: Σ_d r_dk z_d, `[K, J]`.
        second: Σ_d r_dk (z_d z_dᵀ + diag σ_d²), `[K, J, J]`.
    """

    count: Tensor  # type: ignore[assignment]
    first: Tensor
    second: Tensor

    def plus(self, other: MixtureSums) -> MixtureSums:
        """Sums over the samples of both."""
        return MixtureSums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def moments(responsibilities: Tensor, loc: Tensor, variance: Tensor | None = None) -> MixtureSums:
    """Sums over a batch.

    Args:
        responsibilities: r, `[B, K]`.
        loc: Draws of z (`collapsed`) or means of q(Z|X) (`meanfield`, `paper`), `[B, J]`.
        variance: Variances of q(Z|X) `[B, J]`, or None for draws.
    """
    r, z = responsibilities.double(), loc.double()
    outer = z.unsqueeze(-1) * z.unsqueeze(-2)
    if variance is not None:
        outer = outer + torch.diag_embed(variance.double())
    return MixtureSums(r.sum(0), r.T @ z, torch.einsum("bk,bij->kij", r, outer))


def posterior_moments(responsibilities: Tensor, posterior: LatentPosterior) -> MixtureSums:
    """Sums over a batch with the moments of q(Z|X): of all its Gaussians by their weights, where it is a mixture.

    Args:
        responsibilities: r, `[B, K]`.
        posterior: q(Z|X).
    """
    sums = (
        moments(weight.unsqueeze(-1) * responsibilities, one.loc, one.log_variance.exp())
        for weight, one in posterior.parts()
    )
    return reduce(MixtureSums.plus, sums)


def apply_update(mixture: GaussianMixture, sums: MixtureSums, pseudo_count: float, variance_floor: float) -> list[int]:
    r"""Set means, covariances and shares to the maximisers of the objective that the sums belong to, plus `log_prior`.

    `μ̃_k = Σ r z / n_k`, `Σ̃_k = (Σ r (z - μ̃_k)(z - μ̃_k)ᵀ + r diag σ² + κ I) / (n_k + κ)` with eigenvalues (diagonal:
    entries) not below the floor, `π_{k|c} = (n_k + κ) / Σ_{k' in c} (n_k' + κ)`. A component with `n_k < κ` keeps its
    mean and covariance.

    Args:
        mixture: Changed in place.
        sums: Of all samples.
        pseudo_count: κ > 0.
        variance_floor: Smallest variance in any direction.

    Returns:
        The components that were kept because nothing belongs to them.
    """
    count = sums.count.clamp(min=torch.finfo(torch.float64).tiny)
    loc = sums.first / count.unsqueeze(-1)
    scatter = sums.second - count[:, None, None] * loc.unsqueeze(-1) * loc.unsqueeze(-2)
    eye = torch.eye(loc.shape[-1], dtype=loc.dtype, device=loc.device)
    spread = (scatter + pseudo_count * eye) / (count + pseudo_count)[:, None, None]
    scale = _floored_scale(spread, mixture.covariance_kind, variance_floor)
    empty = sums.count < pseudo_count
    old_loc, old_scale = mixture.component_loc.to(loc), mixture.component_scale.to(loc)
    loc = torch.where(empty.unsqueeze(-1), old_loc, loc)
    scale = torch.where(empty.reshape(-1, *[1] * (scale.dim() - 1)), old_scale, scale)
    dtype = mixture.component_loc.dtype
    shares = _log_shares(mixture, sums.count + pseudo_count)
    mixture.replace(loc.to(dtype), scale.to(dtype), mixture.component_cell, shares.to(dtype))
    return [int(k) for k in torch.nonzero(empty)]


def _floored_scale(covariance: Tensor, kind: Covariance, floor: float) -> Tensor:
    if kind == "diagonal":
        return covariance.diagonal(dim1=-2, dim2=-1).clamp(min=floor).sqrt()
    return gaussian.floored_cholesky(covariance, floor)


def _log_shares(mixture: GaussianMixture, count: Tensor) -> Tensor:
    per_cell = count.new_zeros(mixture.n_cells).index_add(0, mixture.component_cell, count)
    return torch.log(count / per_cell[mixture.component_cell])


def log_prior(mixture: GaussianMixture, pseudo_count: float) -> Tensor:
    r"""The declared log-prior under which `apply_update` is a maximiser, up to a constant.

    `Σ_k [-κ/2 (log det Σ̃_k + tr Σ̃_k⁻¹) + κ log π_{k|c}]`: κ pseudo-observations of unit variance per component.
    """
    covariance = mixture.covariance().double()
    trace = torch.linalg.inv(covariance).diagonal(dim1=-2, dim2=-1).sum(-1)
    gaussians = -0.5 * pseudo_count * (torch.logdet(covariance) + trace)
    return (gaussians + pseudo_count * mixture.component_log_share.double()).sum()


@torch.no_grad()
def reseed(mixture: GaussianMixture, count: Tensor, smallest_share: float) -> tuple[list[int], Tensor]:
    """Give empty components a new place: each splits the largest component, of its own cell unless that is empty.

    The components of the pair sit half a standard deviation to both sides along the widest direction and are narrower
    there, so that the two together have the mean and covariance of the one that was split, and no two are the same.

    Args:
        mixture: Changed in place.
        count: Samples per component, `[K]`.
        smallest_share: A component with less than this share of all samples counts as empty; below 1 / K.

    Returns:
        The components that were moved, and the samples per component after that: a pair shares those of the one split.
    """
    count = count.double().clone()
    threshold = smallest_share * count.sum()
    moved = [int(k) for k in torch.nonzero(count < threshold)]
    cells = mixture.component_cell
    for k in moved:
        siblings = torch.where(cells == cells[k], count, torch.zeros_like(count))
        pool = siblings if bool(siblings.max() >= threshold) else count
        source = int(pool.argmax())
        _split(mixture, source, k)
        count[k] = count[source] = count[source] / 2
    if moved:
        shares = _log_shares(mixture, count.clamp(min=1e-12)).to(mixture.component_log_share)
        mixture.replace(mixture.component_loc, mixture.component_scale, cells, shares)
    return moved, count


def _split(mixture: GaussianMixture, source: int, target: int) -> None:
    covariance = mixture.covariance()[source]
    values, vectors = torch.linalg.eigh(covariance)
    step = 0.5 * values[-1].sqrt() * vectors[:, -1]
    loc, scale = mixture.component_loc.clone(), mixture.component_scale.clone()
    loc[target], loc[source] = loc[source] + step, loc[source] - step
    scale[[target, source]] = _floored_scale(covariance - torch.outer(step, step), mixture.covariance_kind, 0.0)
    mixture.replace(loc, scale, mixture.component_cell, mixture.component_log_share)
