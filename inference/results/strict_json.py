"""Strict JSON of what results are made of."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

__all__ = ["to_json"]

_Plain = None | bool | int | float | str | list["_Plain"] | dict[str, "_Plain"]


def to_json(value: object, indent: int | None = 2) -> str:
    """Strict JSON of nested dicts, sequences, arrays, numbers and strings.

    NaN and infinities, for which JSON has no form, become null; NumPy scalars and arrays become numbers and lists.

    Args:
        value: What to write.
        indent: Spaces per level; None for one line.

    Raises:
        ValueError: `value` holds something else; the message says where.
    """
    return json.dumps(_plain(value, "value"), indent=indent, allow_nan=False, ensure_ascii=False)


def _plain(value: object, where: str) -> _Plain:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {_key(key, where): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Path):
        return str(value)
    kind = type(value).__name__
    raise ValueError(f"{where}: expected numbers, strings, arrays, lists or dicts, got {kind}; convert it")


def _key(key: object, where: str) -> str:
    if isinstance(key, str):
        return str(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return str(int(key))
    raise ValueError(f"{where}: expected keys that are strings, got {key!r}; convert it")
