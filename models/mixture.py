"""Gaussian mixture on the latent space: one cell per joint outcome, one or several Gaussians per cell."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from causalpima.models import gaussian
from causalpima.models.batch import Batch
from causalpima.models.distributions import ComponentNormal

__all__ = [
    "ABSENT_LOG_SHARE",
    "Covariance",
    "GaussianMixture",
    "TrainableMixture",
    "WholeLatent",
]


# What mixtures have in common of which every modality sees all of Z and all of N.


@runtime_checkable
class _HasCells(Protocol):
    @property
    def n_cells(self) -> int: ...


class WholeLatent:
    """No modality has a part of Z, or a view of N, of its own; `BlockMixture` is the opposite."""

    def part(self, name: str, latent: Tensor) -> Tensor:
        """What of Z a modality depends on: all of it."""
        return latent

    def level(self, name: str, cell: Tensor) -> Tensor:
        """What of N a modality depends on: all of it, the cell."""
        return cell

    def n_levels(self: _HasCells, name: str) -> int:
        """Number of levels of a modality: the cells."""
        return self.n_cells

    def sum_to_levels(self, name: str, per_cell: Tensor) -> Tensor:
        """Sum over the cells of each level of a modality, `[*b, C]` -> `[*b, levels]`: as it is."""
        return per_cell

    def level_permutation(self, name: str, permutation: Tensor) -> Tensor:
        """New numbers of a modality's levels where cell c becomes `permutation[c]`: the same."""
        return permutation

    def present(self, batch: Batch) -> Tensor | None:
        """Which dimensions of Z some of the modalities of a sample give: None, all of them."""
        return None


Covariance = Literal["diagonal", "full"]

ABSENT_LOG_SHARE = -1e4
"""Of a place that no component has, in tensors by cell."""


class GaussianMixture(WholeLatent, nn.Module):
    r"""p(Z | N = c) = Σ_{k of cell c} π_{k|c} N(Z; μ̃_k, Σ̃_k), with a fixed map from components to cells.

    All parameters are set by closed-form updates (paper, equation 7) through `replace`, not by gradients (for these
    see `TrainableMixture`): `component_loc` `[K, J]`, `component_scale` (`[K, J]` standard deviations, or `[K, J, J]`
    Cholesky factors with full covariance), `component_cell` `[K]`, `component_log_share` `[K]` (log π_{k|c}).

    Args:
        n_cells: Number of cells, C. The mixture starts with one Gaussian per cell.
        latent_dim: Dimension of Z, J.
        covariance: `diagonal` or `full`.
    """

    _SAVED: ClassVar[tuple[str, ...]] = ("component_loc", "component_scale", "component_cell", "component_log_share")

    component_loc: Tensor
    component_scale: Tensor
    component_cell: Tensor
    component_log_share: Tensor
    cell_components: Tensor
    cell_log_share: Tensor

    def __init__(self, n_cells: int, latent_dim: int, covariance: Covariance = "diagonal") -> None:
        super().__init__()
        self.n_cells = n_cells
        self.latent_dim = latent_dim
        self.covariance_kind: Covariance = covariance
        self._register()
        unit = torch.ones(n_cells, latent_dim)
        scale = unit if covariance == "diagonal" else torch.diag_embed(unit)
        self.replace(torch.randn(n_cells, latent_dim), scale, torch.arange(n_cells), torch.zeros(n_cells))

    def _register(self) -> None:
        """Empty tensors, to be filled by `replace`; those of `_SAVED` are what is saved."""
        for name in self._SAVED:
            self.register_buffer(name, torch.empty(0))
        for name in ("cell_components", "cell_log_share"):
            self.register_buffer(name, torch.empty(0), persistent=False)

    @property
    def n_components(self) -> int:
        """Number of Gaussians, K >= C."""
        return len(self.component_cell)

    def replace(self, loc: Tensor, scale: Tensor, cell: Tensor, log_share: Tensor) -> None:
        """Set all components at once; their number may change.

        Args:
            loc: `[K, J]`.
            scale: `[K, J]` or `[K, J, J]`, as the covariance asks.
            cell: Cell of each component, `[K]`; every cell has at least one.
            log_share: log π_{k|c}, `[K]`; normalised within each cell.

        Raises:
            ValueError: A cell without a component, or a tensor of another shape.
        """
        self._check(loc, scale, cell, log_share)
        self._set(loc, scale, cell, log_share)

    def _set(self, loc: Tensor, scale: Tensor, cell: Tensor, log_share: Tensor) -> None:
        """Store tensors in the form of `_SAVED`, and index them by cell."""
        self.component_loc, self.component_scale = loc, scale
        self.component_cell, self.component_log_share = cell, log_share
        self.cell_components, self.cell_log_share = self._by_cell(log_share)

    def relabel(self, permutation: Tensor) -> None:
        """Give the cells other numbers: cell c becomes cell `permutation[c]`, `[C]`, with the same Gaussians."""
        cell = permutation.to(self.component_cell)[self.component_cell]
        saved = {name: getattr(self, name) for name in self._SAVED}
        self._set(*(saved | {"component_cell": cell}).values())

    def _check(self, loc: Tensor, scale: Tensor, cell: Tensor, log_share: Tensor) -> None:
        if not torch.equal(torch.unique(cell), torch.arange(self.n_cells, device=cell.device)):
            raise ValueError(f"cell: expected a component for each of {self.n_cells} cells, got {cell.tolist()}")
        shape = (len(cell), self.latent_dim)
        scale_shape = shape if self.covariance_kind == "diagonal" else (*shape, self.latent_dim)
        parts = {"loc": (loc, shape), "scale": (scale, scale_shape), "log_share": (log_share, shape[:1])}
        for name, (tensor, expected) in parts.items():
            if tensor.shape != expected:
                kind = f"{len(cell)} components with {self.covariance_kind} covariance"
                raise ValueError(f"{name}: expected shape {expected} for {kind}, got {tuple(tensor.shape)}")

    def _by_cell(self, log_share: Tensor) -> tuple[Tensor, Tensor]:
        """Components of every cell and their log-shares `[C, K_max]`; absent places have one close to -infinity."""
        members = [torch.nonzero(self.component_cell == cell).squeeze(-1) for cell in range(self.n_cells)]
        width = max(len(rows) for rows in members)
        index = torch.zeros(self.n_cells, width, dtype=torch.long, device=self.component_cell.device)
        of_places = log_share.new_full((self.n_cells, width), ABSENT_LOG_SHARE)
        for cell, rows in enumerate(members):
            index[cell] = rows[log_share[rows].argmax()]
            index[cell, : len(rows)] = rows
            of_places[cell, : len(rows)] = log_share[rows]
        return index, of_places

    def log_prior(self) -> Tensor:
        """Declared log-prior of what gradients move, once for the data set: 0, of nothing here."""
        return torch.zeros((), dtype=self.component_loc.dtype, device=self.component_loc.device)

    def project(self) -> None:
        """Back into the range of the parameters after a gradient step: nothing was moved."""

    def component(self, index: Tensor) -> ComponentNormal:
        """The Gaussians with these indices, batch shape that of `index`."""
        return ComponentNormal(self.component_loc[index], self.component_scale[index], validate_args=False)

    def log_weight(self, log_joint: Tensor) -> Tensor:
        """log(p(N = cell of k) π_{k|cell}) of every component, `[K]`; `log_joint` is `[C_1, ..., C_L]`."""
        return log_joint.reshape(-1)[self.component_cell] + self.component_log_share

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log N(value; μ̃_k, Σ̃_k) for `value` `[*b, J]`, shape `[*b, K]`.

        Args:
            value: `[*b, J]`.
            present: None: one block of Z is always there. `BlockMixture` has others.
        """
        return gaussian.log_density(value.unsqueeze(-2), self.component_loc, self.component_scale)

    def expected_log_density(self, q_loc: Tensor, q_scale: Tensor) -> Tensor:
        """E_q log N(z; μ̃_k, Σ̃_k) for q = N(q_loc, diag q_scale²) `[*b, J]`, shape `[*b, K]`."""
        return gaussian.expected_log_density(
            q_loc.unsqueeze(-2), q_scale.unsqueeze(-2), self.component_loc, self.component_scale
        )

    def complete(self, latent: Tensor, cell: Tensor, noise: Tensor, present: Tensor | None) -> Tensor:
        """Draws of Z with the dimensions that are not present drawn given N: as they are; see `BlockMixture`."""
        return latent

    def complete_moments(self, r: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
        """Moments of q(Z | X) with those of absent dimensions given q(N | X): as they are; see `BlockMixture`."""
        return loc, scale

    def covariance(self) -> Tensor:
        """Covariance matrices, `[K, J, J]`."""
        return gaussian.covariance(self.component_scale)

    def sum_to_cells(self, per_component: Tensor) -> Tensor:
        """Sum over the components of each cell: `[*b, K]` -> `[*b, C]`."""
        out = per_component.new_zeros(*per_component.shape[:-1], self.n_cells)
        return out.index_add(-1, self.component_cell, per_component)

    def logsumexp_to_cells(self, per_component: Tensor) -> Tensor:
        """log Σ exp over the components of each cell: `[*b, K]` -> `[*b, C]`."""
        if self.n_components == self.n_cells:
            return per_component[..., self.cell_components[:, 0]]
        return torch.logsumexp(self.spread_over_cells(per_component), dim=-1)

    def spread_over_cells(self, per_component: Tensor) -> Tensor:
        """Arrange values of components by cell: `[*b, K]` -> `[*b, C, K_max]`, absent places close to -infinity."""
        absent = torch.where(self.cell_log_share > ABSENT_LOG_SHARE, 0.0, ABSENT_LOG_SHARE)
        return per_component[..., self.cell_components] + absent

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: object) -> None:
        names = [prefix + name for name in self._SAVED]
        if all(name in state_dict for name in names):
            like = [getattr(self, name) for name in self._SAVED]
            loaded = [state_dict[name].to(now, copy=True) for name, now in zip(names, like, strict=True)]
            self._check(*loaded)
            self._set(*loaded)
        super()._load_from_state_dict(state_dict, prefix, *args)


# Gaussian mixture on the latent space whose components are moved by gradients, as those of VaDE and PIMA_torch.


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
