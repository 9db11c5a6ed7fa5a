"""Which elements of an array were measured: those that are no NaN and that no mask takes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from inference.data.variables import MASK_SUFFIX

__all__ = ["check_mask_shape", "measured_elements"]


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
    check_mask_shape(name, np.shape(mask), values.shape)
    flags = _flags(name + MASK_SUFFIX, np.asarray(mask))
    return measured & flags.reshape(flags.shape + (1,) * (values.ndim - flags.ndim))


def check_mask_shape(name: str, mask: tuple[int, ...], values: tuple[int, ...]) -> None:
    """Refuse a mask that is of neither shape that it may have.

    Args:
        name: Name of the values.
        mask: Shape of the mask.
        values: Shape of the values.

    Raises:
        ValueError: It is of another.
    """
    if mask not in (values, values[:1]):
        raise ValueError(
            f"{name + MASK_SUFFIX}: expected the shape {values[:1]} or {values} for the mask of {name!r}, got {mask}; "
            "give one value per sample, or one per element"
        )


def _flags(name: str, mask: np.ndarray) -> np.ndarray:
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        got = f"type {mask.dtype}" if mask.dtype.kind not in "biuf" else "other values"
        raise ValueError(f"{name}: expected 1 (measured) and 0 (missing) only, or bool, got {got}")
    return mask.astype(bool)
