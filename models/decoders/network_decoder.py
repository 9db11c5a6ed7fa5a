"""What decoders share that are a network: one head on Z alone, or one per cell."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from models.decoders.base import Decoder
from models.decoders.heads import renumber_heads

__all__ = ["NetworkDecoder", "select_head"]


class NetworkDecoder(Decoder):
    """A decoder that is a network.

    Args:
        body: Maps Z `[*b, J]` to features `[*b, F]`.
        head: Maps features to the outputs of all heads, `[*b, heads * D * P]`; D is the number of elements of an event,
            P the number of outputs for each.
        event_shape: Shape of one sample.
        n_cells: One head per cell if given, else one head on Z alone.
    """

    def __init__(self, body: nn.Module, head: nn.Module, event_shape: Sequence[int], n_cells: int | None) -> None:
        super().__init__()
        self.body, self.head = body, head
        self.event_shape = torch.Size(event_shape)
        self.n_cells = n_cells
        self.depends_on_cell = n_cells is not None
        self.depends_on_latent = True

    def outputs(self, features: Tensor, cell: Tensor) -> Tensor:
        """Outputs of the head, that of the cell where there is one for each, `[*broadcast, D * P]`.

        Args:
            features: `[*b, F]`.
            cell: Index of the cell, broadcastable with `*b`.
        """
        outputs: Tensor = self.head(features)
        return outputs if self.n_cells is None else select_head(outputs.unflatten(-1, (self.n_cells, -1)), cell)

    def relabel(self, permutation: Tensor) -> None:
        """Give the heads the new numbers of their cells; see `Decoder.relabel`."""
        if self.n_cells is not None:
            renumber_heads(nn.Sequential(self.body, self.head), self.n_cells, permutation)


def select_head(heads: Tensor, cell: Tensor) -> Tensor:
    """The head of each cell: `heads` `[*b, C, D]`, `cell` broadcastable with `*b`; result `[*broadcast, D]`.

    Cells that do not vary along the batch (enumeration: `[C, 1, ..., 1]`) are a view, not a gather.
    """
    batch_dims = heads.dim() - 2
    varies = any(size != 1 for size in cell.shape[max(cell.dim() - batch_dims, 0) :])
    if not varies:
        outer = cell.reshape(cell.shape[: max(cell.dim() - batch_dims, 0)])
        return heads.movedim(-2, 0)[outer]
    shape = torch.broadcast_shapes(heads.shape[:-2], cell.shape)
    index = cell.expand(shape)[..., None, None].expand(*shape, 1, heads.shape[-1])
    return heads.expand(*shape, *heads.shape[-2:]).gather(-2, index).squeeze(-2)
