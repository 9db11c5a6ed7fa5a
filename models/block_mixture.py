"""p(Z | N) with one block of Z per modality, which depends on the nodes that the modality sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from models.batch import Batch
from models.factorised_mixture import FactorisedMixture, Mixture

__all__ = ["BlockMixture", "Mixture"]


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
