"""What mixtures have in common of which every modality sees all of Z and all of N."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from models.batch import Batch

__all__ = ["WholeLatent"]


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
