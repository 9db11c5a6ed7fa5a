"""Heads per cell, renumbered."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["renumber_heads"]

_OUTPUT_AXIS = {nn.Linear: 0, nn.ConvTranspose2d: 1}


@torch.no_grad()
def renumber_heads(network: nn.Module, n_heads: int, permutation: Tensor) -> None:
    """Let head c of the last layer with weights become head `permutation[c]`.

    Args:
        network: Its last layer is linear or a transposed convolution, whose outputs are one group per head.
        n_heads: Number of heads, C.
        permutation: New number of each head, `[C]`.

    Raises:
        ValueError: Another last layer.
    """
    layer = [module for module in network.modules() if next(module.parameters(recurse=False), None) is not None][-1]
    axis = _OUTPUT_AXIS.get(type(layer))
    if axis is None:
        raise ValueError(
            f"decoder: expected a last layer that is one of {', '.join(kind.__name__ for kind in _OUTPUT_AXIS)}, got "
            f"{type(layer).__name__}; its heads cannot be renumbered"
        )
    old = torch.argsort(permutation)
    for name, along in (("weight", axis), ("bias", 0)):
        value = getattr(layer, name)
        if value is not None:
            value.copy_(value.unflatten(along, (n_heads, -1)).index_select(along, old).flatten(along, along + 1))
