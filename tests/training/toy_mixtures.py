"""Random mixtures, and everything that their updates depend on, held fixed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from causalpima.inference.objectives.closed_form import Components
from causalpima.models.mixture import Covariance, GaussianMixture

KINDS: list[Covariance] = ["diagonal", "full"]
MAPS = {"one each": [0, 1, 2], "several": [2, 0, 0, 1, 2, 2], "not in order": [1, 0, 1, 2]}


def make_mixture(cell: list[int], kind: Covariance, latent_dim: int = 2) -> GaussianMixture:
    """Random means and shares; standard deviations of at least 0.8."""
    n, cells = len(cell), torch.tensor(cell)
    scale = 0.8 + torch.rand(n, latent_dim)
    if kind == "full":
        scale = torch.linalg.cholesky(torch.diag_embed(scale.square()) + 0.4 * torch.ones(latent_dim, latent_dim))
    mixture = GaussianMixture(max(cell) + 1, latent_dim, kind)
    mixture.replace(2.0 * torch.randn(n, latent_dim), scale, cells, normalised(torch.randn(n), cells))
    return mixture


def normalised(logits: Tensor, cells: Tensor) -> Tensor:
    """Shares that sum to one within each cell, as logarithms."""
    total = torch.stack([logits[cells == cell].logsumexp(0) for cell in range(int(cells.max()) + 1)])
    return logits - total[cells]


class Problem(NamedTuple):
    """Everything but the mixture, fixed: q(Z|X), a draw, p(N), and the likelihoods at the draw."""

    q_loc: Tensor
    q_scale: Tensor
    draw: Tensor
    log_joint: Tensor
    shared: Tensor
    per_cell: Tensor

    def components(self, mixture: GaussianMixture) -> Components:
        weight = self.log_joint[mixture.component_cell] + mixture.component_log_share
        return Components(weight, mixture.component_loc, mixture.component_scale, mixture.component_cell)


def make_problem(n_cells: int, n_samples: int = 12, latent_dim: int = 2) -> Problem:
    q_loc, q_scale = 2.0 * torch.randn(n_samples, latent_dim), 0.1 + 1.5 * torch.rand(n_samples, latent_dim)
    draw = q_loc + q_scale * torch.randn_like(q_loc)
    log_joint = torch.log_softmax(torch.randn(n_cells), 0)
    return Problem(q_loc, q_scale, draw, log_joint, torch.randn(n_samples), torch.randn(n_samples, n_cells))
