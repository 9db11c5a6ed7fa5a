"""p(Z | N) with one block of Z per modality, which depends on the nodes that the modality sees."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from causalpima.models import gaussian
from causalpima.models.batch import Batch
from causalpima.models.distributions import ComponentNormal
from causalpima.models.mixture import Covariance, GaussianMixture, WholeLatent

__all__ = [
    "BlockMixture",
    "FactorisedMixture",
    "Mixture",
    "NodeMixture",
    "level_of_cell",
    "n_levels",
]


# The levels of a modality that sees some of the nodes only.


def n_levels(outcomes: Sequence[int], visible: Sequence[int]) -> int:
    """Number of joint outcomes of the visible nodes.

    Args:
        outcomes: Number of outcomes per node.
        visible: Positions of the nodes that the modality sees.
    """
    return math.prod(outcomes[node] for node in visible)


def level_of_cell(outcomes: Sequence[int], visible: Sequence[int]) -> np.ndarray:
    """Joint outcome of the visible nodes in every cell, `[C]`; both row-major, nodes in their own order.

    Args:
        outcomes: Number of outcomes per node.
        visible: Positions of the nodes that the modality sees, in any order.

    >>> level_of_cell((2, 2, 2), (0, 2))
    array([0, 1, 0, 1, 2, 3, 2, 3])
    """
    nodes = sorted(visible)
    values = np.unravel_index(np.arange(math.prod(outcomes)), tuple(outcomes))
    levels: np.ndarray = np.ravel_multi_index([values[node] for node in nodes], [outcomes[node] for node in nodes])
    return levels


# p(Z | N) as a product over blocks of Z, each of which depends on some of the nodes.


class FactorisedMixture(nn.Module, ABC):
    r"""p(Z | N = c) = ∏_b N(Z_b; μ̃_{b, l_b(c)}, Σ̃_{b, l_b(c)}), l_b(c) the joint outcome of the nodes of block b.

    Each block is a `GaussianMixture` whose cells are its levels, with one Gaussian each. Towards the outside Z is the
    blocks one after the other, and this is a mixture of one Gaussian per cell with covariance matrices of blocks; it
    has the reading interface of `GaussianMixture`. Writing goes to the blocks.

    What of Z and N a modality depends on is said by `BlockMixture`, its own block, and `NodeMixture`, all.

    Args:
        outcomes: Number of outcomes per node.
        visible: Per block, positions of the nodes that it depends on.
        latent_dim: Dimension of every block.
        covariance: `diagonal` or `full`, within blocks.
        block: Makes the mixture of a block from its number of levels and the last two.
    """

    _SAVES_LEVELS: ClassVar[bool] = True

    level_of_cell: Tensor

    def __init__(
        self,
        outcomes: Sequence[int],
        visible: Mapping[str, Sequence[int]],
        latent_dim: int,
        covariance: Covariance = "diagonal",
        block: Callable[[int, int, Covariance], GaussianMixture] = GaussianMixture,
    ) -> None:
        super().__init__()
        self.covariance_kind: Covariance = covariance
        self.visible = {name: tuple(sorted(nodes)) for name, nodes in visible.items()}
        self.blocks = nn.ModuleDict(
            {name: block(n_levels(outcomes, nodes), latent_dim, covariance) for name, nodes in self.visible.items()}
        )
        levels = [torch.from_numpy(level_of_cell(outcomes, nodes)) for nodes in self.visible.values()]
        self.register_buffer("level_of_cell", torch.stack(levels), persistent=self._SAVES_LEVELS)
        self.block_dim = latent_dim
        self.latent_dim = latent_dim * len(self.visible)
        self._row = {name: row for row, name in enumerate(self.visible)}

    @property
    def n_cells(self) -> int:
        """Number of cells, C."""
        return self.level_of_cell.shape[1]

    @property
    def n_components(self) -> int:
        """Number of Gaussians over all of Z: one per cell."""
        return self.n_cells

    @property
    def component_loc(self) -> Tensor:
        """Mean of every cell, `[C, J]`."""
        return torch.cat([block.component_loc[level] for _, block, level in self._blocks()], dim=-1)

    @property
    def component_scale(self) -> Tensor:
        """Standard deviations `[C, J]`, or Cholesky factors of blocks `[C, J, J]`."""
        parts = [block.component_scale[level] for _, block, level in self._blocks()]
        if self.covariance_kind == "diagonal":
            return torch.cat(parts, dim=-1)
        out = parts[0].new_zeros(self.n_cells, self.latent_dim, self.latent_dim)
        for row, part in enumerate(parts):
            rows = slice(row * self.block_dim, (row + 1) * self.block_dim)
            out[:, rows, rows] = part
        return out

    @property
    def component_cell(self) -> Tensor:
        """Every cell its own component, `[C]`."""
        return torch.arange(self.n_cells, device=self.level_of_cell.device)

    @property
    def component_log_share(self) -> Tensor:
        """Zeros, `[C]`."""
        return torch.zeros(self.n_cells, dtype=self._any_loc().dtype, device=self.level_of_cell.device)

    @property
    def cell_components(self) -> Tensor:
        """The component of every cell, `[C, 1]`."""
        return self.component_cell.unsqueeze(1)

    @property
    def cell_log_share(self) -> Tensor:
        """Zeros, `[C, 1]`."""
        return self.component_log_share.unsqueeze(1)

    def block(self, name: str) -> GaussianMixture:
        """The mixture of a block; its cells are the levels."""
        return cast(GaussianMixture, self.blocks[name])

    def block_part(self, name: str, latent: Tensor) -> Tensor:
        """The dimensions of a block, `[*b, J]` -> `[*b, J_b]`."""
        begin = self._row[name] * self.block_dim
        return latent[..., begin : begin + self.block_dim]

    def block_levels(self, name: str) -> Tensor:
        """The level of a block in every cell, `[C]`."""
        return self.level_of_cell[self._row[name]]

    def sum_to_block_levels(self, name: str, per_cell: Tensor) -> Tensor:
        """Sum over the cells of each level of a block, `[*b, C]` -> `[*b, levels]`."""
        out = per_cell.new_zeros(*per_cell.shape[:-1], self.block(name).n_cells)
        return out.index_add(-1, self.block_levels(name), per_cell)

    @abstractmethod
    def block_given(self, name: str, present: Mapping[str, Tensor | None]) -> Tensor | None:
        """Which samples tell of a block, bool `[n]`, from those that have each modality; None: all."""

    @abstractmethod
    def part(self, name: str, latent: Tensor) -> Tensor:
        """What of Z a modality depends on, `[*b, J]` -> `[*b, J_m]`."""

    @abstractmethod
    def level(self, name: str, cell: Tensor) -> Tensor:
        """What of N a modality depends on, its level in these cells, shape of `cell`."""

    @abstractmethod
    def n_levels(self, name: str) -> int:
        """Number of levels of a modality."""

    @abstractmethod
    def sum_to_levels(self, name: str, per_cell: Tensor) -> Tensor:
        """Sum over the cells of each level of a modality, `[*b, C]` -> `[*b, levels]`."""

    @abstractmethod
    def level_permutation(self, name: str, permutation: Tensor) -> Tensor:
        """New numbers of a modality's levels, `[levels]`, where cell c becomes `permutation[c]`, `[C]`."""

    @abstractmethod
    def present(self, batch: Batch) -> Tensor | None:
        """Which dimensions of Z some of the modalities of a sample give, bool `[batch, J]`; None: all, everywhere."""

    def _blocks(self) -> Iterator[tuple[str, GaussianMixture, Tensor]]:
        for name, level in zip(self.visible, self.level_of_cell, strict=True):
            yield name, self.block(name), level

    def _any_loc(self) -> Tensor:
        return next(self._blocks())[1].component_loc

    def complete(self, latent: Tensor, cell: Tensor, noise: Tensor, present: Tensor | None) -> Tensor:
        """Draws of Z with the dimensions that are not present drawn given N.

        Args:
            latent: `[*b, J]`, filler in absent blocks.
            cell: N, `[*b]`.
            noise: Standard normal, broadcasts to `[*b, J]`.
            present: Bool, broadcasts to `[*b, J]`; None: all.
        """
        if present is None:
            return latent
        scale = self.component_scale[cell]
        step = scale * noise if self.covariance_kind == "diagonal" else (scale @ noise.unsqueeze(-1)).squeeze(-1)
        return torch.where(present, latent, self.component_loc[cell] + step)

    def complete_moments(self, r: Tensor, loc: Tensor, scale: Tensor, present: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of Z, in absent blocks those of `Σ_c r_c p(Z_b | N = c)`.

        Args:
            r: q(N | X), `[b, C]`.
            loc: Mean of q(Z | X), `[b, J]`.
            scale: Standard deviation of q(Z | X), `[b, J]`.
            present: Bool `[b, J]`; None: all.
        """
        if present is None:
            return loc, scale
        of_cells, weight = self.component_loc, r.to(loc)
        mean = weight @ of_cells
        within = weight @ self.covariance().diagonal(dim1=-2, dim2=-1)
        between = (weight.unsqueeze(-1) * (of_cells - mean.unsqueeze(-2)).square()).sum(-2)
        return torch.where(present, loc, mean), torch.where(present, scale, (within + between).sqrt())

    def component(self, index: Tensor) -> ComponentNormal:
        """p(Z | N) in these cells, batch shape that of `index`."""
        return ComponentNormal(self.component_loc[index], self.component_scale[index], validate_args=False)

    def log_weight(self, log_joint: Tensor) -> Tensor:
        """log p(N), `[C]`; `log_joint` is `[C_1, ..., C_L]`."""
        return log_joint.reshape(-1)

    def log_density(self, value: Tensor, present: Tensor | None = None) -> Tensor:
        """log p(Z = value | N) of the blocks that are present, shape `[*b, C]`.

        Args:
            value: `[*b, J]`.
            present: Bool `[*b, J]`, whole blocks; None: all.
        """
        total = torch.zeros((), dtype=value.dtype, device=value.device)
        for name, block, level in self._blocks():
            of_levels = block.log_density(self.block_part(name, value))[..., level]
            if present is not None:
                of_levels = torch.where(self.block_part(name, present)[..., :1], of_levels, 0.0)
            total = total + of_levels
        return total

    def log_prior(self) -> Tensor:
        """Declared log-prior of what gradients move in all blocks, a scalar."""
        return torch.stack([block.log_prior() for _, block, _ in self._blocks()]).sum()

    def project(self) -> None:
        """Every block back into its range after a gradient step."""
        for _, block, _ in self._blocks():
            block.project()

    def covariance(self) -> Tensor:
        """Covariance matrices of the cells, `[C, J, J]`."""
        return gaussian.covariance(self.component_scale)

    def sum_to_cells(self, per_component: Tensor) -> Tensor:
        """As it is, `[*b, C]`: there is one component per cell."""
        return per_component

    def logsumexp_to_cells(self, per_component: Tensor) -> Tensor:
        """As it is, `[*b, C]`: there is one component per cell."""
        return per_component

    def spread_over_cells(self, per_component: Tensor) -> Tensor:
        """`[*b, C]` -> `[*b, C, 1]`."""
        return per_component.unsqueeze(-1)

    def relabel(self, permutation: Tensor) -> None:
        """Give the cells other numbers: cell c becomes cell `permutation[c]`, `[C]`, with the same Gaussians."""
        self.level_of_cell = self.level_of_cell[:, torch.argsort(permutation.to(self.level_of_cell.device))]


Mixture = GaussianMixture | FactorisedMixture


class BlockMixture(FactorisedMixture):
    r"""p(Z | N = c) = ∏_m N(Z_m; μ̃_{m, l_m(c)}, Σ̃_{m, l_m(c)}), l_m(c) the joint outcome of the nodes that m sees.

    The mask of modalities and nodes: what a modality does not see changes nothing about it. The blocks of a
    `FactorisedMixture` are those of the modalities, and have their names.

    The block of a modality that a sample lacks is marginalised: methods that take `present` leave its dimensions out.
    """

    _SAVES_LEVELS: ClassVar[bool] = False  # they are those of the mask

    def part(self, name: str, latent: Tensor) -> Tensor:
        """The block of a modality, `[*b, J]` -> `[*b, J_m]`."""
        return self.block_part(name, latent)

    def level(self, name: str, cell: Tensor) -> Tensor:
        """The level of a modality in these cells, shape of `cell`."""
        return self.block_levels(name)[cell]

    def n_levels(self, name: str) -> int:
        """Number of joint outcomes of the nodes that a modality sees."""
        return self.block(name).n_cells

    def sum_to_levels(self, name: str, per_cell: Tensor) -> Tensor:
        """Sum over the cells of each level of a modality, `[*b, C]` -> `[*b, levels]`."""
        return self.sum_to_block_levels(name, per_cell)

    def block_given(self, name: str, present: Mapping[str, Tensor | None]) -> Tensor | None:
        """Which samples have the modality of a block, bool `[n]`; None: all."""
        return present[name]

    def level_permutation(self, name: str, permutation: Tensor) -> Tensor:
        """New numbers of the levels of a modality, `[levels]`, where cell c becomes cell `permutation[c]`, `[C]`.

        Raises:
            ValueError: Cells that the modality does not tell apart would become cells that it does.
        """
        level, n_levels = self.block_levels(name), self.n_levels(name)
        pairs = torch.unique(torch.stack([level, level[permutation.to(level)]]), dim=1)
        if pairs.shape[1] != n_levels:
            raise ValueError(
                f"permutation: expected one that keeps the mask, got one that names cells which {name} cannot tell "
                "apart as if they differed in nodes that it sees; rename outcomes within nodes only"
            )
        return pairs[1]

    def relabel(self, permutation: Tensor) -> None:
        """Give the cells other numbers: cell c becomes cell `permutation[c]`, `[C]`; levels follow.

        Raises:
            ValueError: The permutation does not keep the mask.
        """
        of_levels = {name: self.level_permutation(name, permutation) for name in self.visible}
        for name, of_block in of_levels.items():
            block, old = self.block(name), torch.argsort(of_block)
            parts = block.component_loc[old], block.component_scale[old]
            block.replace(*parts, block.component_cell, block.component_log_share)

    def present(self, batch: Batch) -> Tensor | None:
        """Which dimensions of Z belong to modalities that a sample has, bool `[batch, J]`; None: all, everywhere."""
        if all(batch.present[name] is None for name in self.visible):
            return None
        rows = torch.stack([batch.has(name) for name in self.visible], dim=-1)
        return rows.repeat_interleave(self.block_dim, dim=-1)


# p(Z | N) with one block of Z per node, which all modalities see.


class NodeMixture(WholeLatent, FactorisedMixture):
    r"""p(Z | N) = ∏_l N(Z_l; μ̃_{l, N_l}, Σ̃_{l, N_l}): what a node says of a sample is in dimensions of its own.

    A `GaussianMixture` over the cells whose means are sums over nodes, with Σ_l C_l Gaussians for ∏_l C_l cells. The
    dependence between the blocks is that of the nodes, p(N). Every decoder depends on all of Z.

    Which block is which node's is saved with the weights (`level_of_cell`): when cells get other numbers the blocks
    stay where encoders and decoders have them. Numbers that do more than exchange nodes and rename outcomes leave the
    same density, in which blocks are no longer those of nodes.

    Args:
        outcomes: Number of outcomes per node.
        latent_dim: Dimension of every node's block.
        covariance: `diagonal` or `full`, within blocks.
        block: See `FactorisedMixture`.
    """

    def __init__(
        self,
        outcomes: Sequence[int],
        latent_dim: int,
        covariance: Covariance = "diagonal",
        block: Callable[[int, int, Covariance], GaussianMixture] = GaussianMixture,
    ) -> None:
        visible = {f"block_{node + 1}": (node,) for node in range(len(outcomes))}
        super().__init__(outcomes, visible, latent_dim, covariance, block)

    def block_given(self, name: str, present: Mapping[str, Tensor | None]) -> Tensor | None:
        """Which samples tell of a block: None, all."""
        return None
