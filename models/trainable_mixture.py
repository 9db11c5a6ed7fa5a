"""Gaussian mixture on the latent space whose components are moved by gradients, as those of VaDE and PIMA_torch."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from models import gaussian
from models.mixture import ABSENT_LOG_SHARE, Covariance, GaussianMixture

__all__ = ["TrainableMixture"]


class TrainableMixture(GaussianMixture):
    r"""A `GaussianMixture` with free parameters in place of tensors that closed-form updates set.

    `free_loc` `[K, J]` is μ̃. `free_scale` holds log-scales: `[K, J]` log σ̃ with diagonal covariance; `[K, J, J]` with
    full covariance, the lower triangle of the Cholesky factor with the logarithm of its diagonal (the upper one is
    unused). `free_log_share` `[K]` are logits, π_{k|c} their softmax over the components of a cell; fixed while every
    cell has one. Optimisers must be told of new parameters after `replace`.

    Args:
        n_cells: Number of cells, C.
        latent_dim: Dimension of Z, J.
        covariance: `diagonal` or `full`.
        pseudo_count: κ of the declared log-prior, in samples; that of the closed-form updates.
        variance_floor: Smallest variance in any direction.
    """

    _SAVED: ClassVar[tuple[str, ...]] = ("free_loc", "free_scale", "component_cell", "free_log_share")

    free_loc: nn.Parameter
    free_scale: nn.Parameter
    free_log_share: nn.Parameter
    cell_absent: Tensor

    def __init__(
        self,
        n_cells: int,
        latent_dim: int,
        covariance: Covariance = "diagonal",
        *,
        pseudo_count: float,
        variance_floor: float,
    ) -> None:
        super().__init__(n_cells, latent_dim, covariance)
        self.pseudo_count, self.variance_floor = pseudo_count, variance_floor

    def _register(self) -> None:
        for name in ("free_loc", "free_scale", "free_log_share"):
            self.register_parameter(name, nn.Parameter(torch.empty(0)))
        self.register_buffer("component_cell", torch.empty(0))
        for name in ("cell_components", "cell_absent"):
            self.register_buffer(name, torch.empty(0), persistent=False)

    @property
    def component_loc(self) -> Tensor:  # type: ignore[override]
        """Means, `[K, J]`."""
        return self.free_loc

    @property
    def component_scale(self) -> Tensor:  # type: ignore[override]
        """Standard deviations `[K, J]`, or Cholesky factors `[K, J, J]`."""
        if self.covariance_kind == "diagonal":
            return self.free_scale.exp()
        return self.free_scale.tril(-1) + torch.diag_embed(self.free_scale.diagonal(dim1=-2, dim2=-1).exp())

    @property
    def component_log_share(self) -> Tensor:  # type: ignore[override]
        """log π_{k|c}, `[K]`."""
        of_cells = torch.logsumexp(self.free_log_share[self.cell_components] + self.cell_absent, dim=-1)
        return self.free_log_share - of_cells[self.component_cell]

    @property
    def cell_log_share(self) -> Tensor:  # type: ignore[override]
        """log π_{k|c} of the components of every cell, `[C, K_max]`."""
        of_places = self.component_log_share[self.cell_components]
        return torch.where(self.cell_absent < 0, ABSENT_LOG_SHARE, of_places)

    def replace(self, loc: Tensor, scale: Tensor, cell: Tensor, log_share: Tensor) -> None:
        """Set all components at once, as new parameters; see `GaussianMixture.replace`."""
        self._check(loc, scale, cell, log_share)
        self._set(loc, _log_scale(scale, self.covariance_kind), cell, log_share)

    def _set(self, loc: Tensor, scale: Tensor, cell: Tensor, log_share: Tensor) -> None:
        self.component_cell = cell
        self.free_loc, self.free_scale = nn.Parameter(_copied(loc)), nn.Parameter(_copied(scale))
        self.free_log_share = nn.Parameter(_copied(log_share), requires_grad=len(cell) > self.n_cells)
        self.cell_components, of_places = self._by_cell(log_share.detach())
        self.cell_absent = torch.where(of_places > ABSENT_LOG_SHARE, 0.0, ABSENT_LOG_SHARE).to(log_share)

    def log_prior(self) -> Tensor:
        """`Σ_k κ (E log N(z; 0, Σ̃_k) + log π_{k|c})` over z ~ N(0, I), once for the data set: κ samples per component.

        Up to a constant it is the declared log-prior of the closed-form updates: both modes have one objective.
        """
        loc = torch.zeros_like(self.free_loc)
        gaussians = gaussian.expected_log_density(loc, torch.ones_like(loc), loc, self.component_scale)
        return self.pseudo_count * (gaussians + self.component_log_share).sum()

    @torch.no_grad()
    def project(self) -> None:
        """Variances below the floor are set to it, after a gradient step."""
        if self.covariance_kind == "diagonal":
            self.free_scale.clamp_(min=0.5 * math.log(self.variance_floor))
            return
        covariance = self.covariance()
        narrow = torch.linalg.eigvalsh(covariance)[:, 0] < self.variance_floor
        if bool(narrow.any()):
            scale = gaussian.floored_cholesky(covariance[narrow], self.variance_floor)
            self.free_scale[narrow] = _log_scale(scale, self.covariance_kind)


def _log_scale(scale: Tensor, kind: Covariance) -> Tensor:
    if kind == "diagonal":
        return scale.log()
    return scale.tril(-1) + torch.diag_embed(scale.diagonal(dim1=-2, dim2=-1).log())


def _copied(value: Tensor) -> Tensor:
    return value.detach().clone()
