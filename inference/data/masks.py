"""Which elements of an array were measured: those that are no NaN and that no mask takes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.data.variables import MASK_SUFFIX

__all__ = ["measured_elements"]


def measured_elements(name: str, values: np.ndarray, mask: Any = None) -> np.ndarray:
    """Bool, of the shape of the values.

    Args:
        name: Name of the values, for messages; that of the mask is `NAME_mask`.
        values: Real numbers `[sample, ...]`.
        mask: Bool or 0 and 1, true where measured, `[sample]` or of the shape of the values; None: NaN alone counts.

    Raises:
        ValueError: A mask of another shape, or with other values.
    """
    measured = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, dtype=bool)
    if mask is None:
        return measured
    flags = _flags(name + MASK_SUFFIX, np.asarray(mask), values.shape, name)
    return measured & flags.reshape(flags.shape + (1,) * (values.ndim - flags.ndim))


def _flags(name: str, mask: np.ndarray, shape: tuple[int, ...], owner: str) -> np.ndarray:
    if mask.shape not in (shape, shape[:1]):
        raise ValueError(
            f"{name}: expected the shape {shape[:1]} or {shape} for the mask of {owner!r}, got {mask.shape}; give one "
            "value per sample, or one per element"
        )
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        got = f"type {mask.dtype}" if mask.dtype.kind not in "biuf" else "other values"
        raise ValueError(f"{name}: expected 1 (measured) and 0 (missing) only, or bool, got {got}")
    return mask.astype(bool)
