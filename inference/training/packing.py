"""Weights and training state as bytes; unpacking them executes no code."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor

__all__ = ["pack_state", "pack_weights", "unpack_state", "unpack_weights"]


def pack_weights(weights: Mapping[str, Tensor]) -> bytes:
    """Tensors by name in the safetensors format, from any device; shared memory is not kept shared."""
    # A clone of each: safetensors refuses views and tensors that share memory.
    return save_safetensors(
        {name: value.detach().cpu().clone(memory_format=torch.contiguous_format) for name, value in weights.items()}
    )


def unpack_weights(content: bytes) -> dict[str, Tensor]:
    """Tensors that `pack_weights` packed, on the CPU."""
    return load_safetensors(content)


def pack_state(state: Mapping[str, Any]) -> bytes:
    """Nested dicts, lists and tuples of tensors, numbers, strings and None, as `torch.load(weights_only=True)` reads.

    Raises:
        ValueError: `state` holds anything else; the message says where.
    """
    buffer = io.BytesIO()
    torch.save(_plain(state, "state"), buffer)
    return buffer.getvalue()


def unpack_state(content: bytes) -> dict[str, Any]:
    """What `pack_state` packed, tensors on the CPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a pickle that we did not write: it is refused, or it is read
        state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def _plain(value: object, where: str) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()  # a view would bring all of its storage
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {_plain(key, where): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
        return tuple(items) if isinstance(value, tuple) else items
    kind = type(value).__name__
    raise ValueError(f"{where}: expected tensors, numbers, strings, lists or dicts, got {kind}; convert it")
