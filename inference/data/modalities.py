"""One array of measurements as a modality: numbers, presence, gaps, shape and kind."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from inference.data.masks import measured_elements
from inference.data.multimodal import ModalityKind

__all__ = ["Modality", "to_modality"]

_CHANNELS = (1, 3, 4)
_MOST_ROUNDING = 0.01


class Modality(NamedTuple):
    """One entry of `MultimodalData`: float32 values, bool `[sample]`, kind, and, with gaps, bool `[sample, ...]`."""

    values: np.ndarray
    present: np.ndarray
    kind: ModalityKind
    observed: np.ndarray | None = None


def to_modality(name: str, values: Any, kind: str | None = None, mask: Any = None) -> Modality:
    """Make a modality from anything that NumPy or torch takes for an array of numbers.

    Elements that are NaN, masked in a masked array, or zero in the mask are missing; a sample that lacks all of them is
    absent.

    Args:
        name: Name for messages.
        values: `[sample]`; `[sample, element]`; images `[sample, height, width]`, `[sample, height, width, channel]`
            or, where only that reading gives 1, 3 or 4 channels, `[sample, channel, height, width]`.
        kind: Default: two dimensions are a vector, more are an image.
        mask: What was measured, see `measured_elements`.

    Raises:
        ValueError: Not numbers, no values, more dimensions than an image has, infinite values, values that float32
            cannot hold, or a mask that does not fit.
    """
    raw = _numbers(name, values)
    if raw.ndim == 0 or raw.size == 0:
        raise ValueError(f"{name}: expected at least 2 samples with values, [sample, ...], got shape {raw.shape}")
    shown = _kind(name, kind, raw.ndim)
    arranged = _arrange(raw, shown)
    if arranged.ndim != (4 if shown == "image" else 2):
        raise ValueError(
            f"{name}: expected [sample], [sample, element], or images [sample, height, width(, channel)], "
            f"got shape {raw.shape} for kind {shown!r}; reshape each sample to one of these"
        )
    measured = _arrange(measured_elements(name, raw, mask), shown)
    _check_finite(name, arranged, measured)
    return _with_presence(_single_precision(name, arranged, measured), measured, shown)


def _kind(name: str, kind: str | None, n_dimensions: int) -> ModalityKind:
    if kind is None:
        return "vector" if n_dimensions <= 2 else "image"
    known: dict[str, ModalityKind] = {choice: choice for choice in get_args(ModalityKind)}
    if kind not in known:
        raise ValueError(f"{name}: expected the kind {', '.join(known)}, got {kind!r}")
    return known[kind]


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = _array(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name}: expected an array of numbers [sample, ...], got {type(values).__name__} that makes none; "
            "give rows of equal length"
        ) from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected real numbers, got {array.dtype}; convert them, or leave this variable out")
    return array


def _array(values: Any) -> np.ndarray:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return np.asarray(values.float() if values.dtype == torch.bfloat16 else values)
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biuf":
        return np.ma.filled(values.astype(np.result_type(values.dtype, np.float32)), np.nan)
    return np.asarray(values)


def _arrange(values: np.ndarray, kind: ModalityKind) -> np.ndarray:
    """Elements or channels as the last dimension; other numbers of dimensions stay as they are."""
    if values.ndim == 1 or (values.ndim == 3 and kind == "image"):
        return values[..., np.newaxis]
    if values.ndim == 4 and values.shape[1] in _CHANNELS and values.shape[-1] not in _CHANNELS:
        return np.moveaxis(values, 1, -1)
    return values


def _check_finite(name: str, values: np.ndarray, measured: np.ndarray) -> None:
    infinite = (np.isinf(values) & measured).reshape(len(values), -1).any(1)
    if infinite.any():
        raise ValueError(
            f"{name}: expected finite values, got infinity in {infinite.sum()} of {len(values)} samples, first in "
            f"sample {infinite.argmax()}; correct them, or set them to NaN to mark them as missing"
        )


def _with_presence(values: np.ndarray, measured: np.ndarray, kind: ModalityKind) -> Modality:
    rows = measured.reshape(len(measured), -1)
    present, complete = np.any(rows, axis=1), np.all(rows, axis=1)
    has_gaps = bool((present & ~complete).any())
    return Modality(values, present, kind, np.array(measured, order="C") if has_gaps else None)


def _single_precision(name: str, values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Float32, zero where nothing was measured."""
    filled = np.where(measured, values, 0)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(filled, dtype=np.float32)
    if not np.isfinite(single).all():
        raise ValueError(
            f"{name}: expected values that fit float32 (below 3.4e38), got one of size {np.abs(filled).max():g}; "
            "give them in a larger unit"
        )
    _check_rounding(name, filled[measured], single[measured])
    return single


def _check_rounding(name: str, exact: np.ndarray, single: np.ndarray) -> None:
    if exact.dtype.kind == "b" or np.can_cast(exact.dtype, np.float32) or not exact.size:
        return
    spread, lost = exact.std(dtype=np.float64), np.abs(single - exact.astype(np.float64)).max()
    if exact.min() < exact.max() and lost > _MOST_ROUNDING * spread:
        raise ValueError(
            f"{name}: expected differences that float32 can hold, got a standard deviation of {spread:g} at values "
            f"around {exact.mean(dtype=np.float64):g}; subtract their mean, or give them in another unit, first"
        )
