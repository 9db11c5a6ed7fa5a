"""One array of measurements as a modality: numbers, presence, shape and kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from inference.data.multimodal import ModalityKind, MultimodalData

__all__ = ["Modality", "assemble", "to_modality"]

_CHANNELS = (1, 3, 4)
_MOST_ROUNDING = 0.01


class Modality(NamedTuple):
    """One entry of `MultimodalData`: float32 values, bool `[sample]`, and how it is shown."""

    values: np.ndarray
    present: np.ndarray
    kind: ModalityKind


def assemble(name: str, modalities: Mapping[str, Modality]) -> MultimodalData:
    """Samples from aligned modalities, with no factors."""
    return MultimodalData(
        name=name,
        modalities={key: modality.values for key, modality in modalities.items()},
        present={key: modality.present for key, modality in modalities.items()},
        kinds={key: modality.kind for key, modality in modalities.items()},
    )


def to_modality(name: str, values: Any, kind: ModalityKind | None = None) -> Modality:
    """Make a modality from anything that NumPy or torch takes for an array of numbers.

    Rows that are NaN throughout (or masked, in a masked array) are absent samples.

    Args:
        name: Name for messages.
        values: `[sample]`; `[sample, element]`; images `[sample, height, width]`, `[sample, height, width, channel]`
            or, where only that reading gives 1, 3 or 4 channels, `[sample, channel, height, width]`.
        kind: Default: two dimensions are a vector, more are an image.

    Raises:
        ValueError: Not numbers, no values, more dimensions than an image has, rows that are NaN in part, infinite
            values, or values that float32 cannot hold.
    """
    raw = _numbers(name, values)
    if raw.ndim == 0 or raw.size == 0:
        raise ValueError(f"{name}: expected at least 2 samples with values, [sample, ...], got shape {raw.shape}")
    kind = kind or ("vector" if raw.ndim <= 2 else "image")
    if kind not in get_args(ModalityKind):
        raise ValueError(f"{name}: expected the kind {', '.join(get_args(ModalityKind))}, got {kind!r}")
    arranged = _arrange(raw, kind)
    if arranged.ndim != (4 if kind == "image" else 2):
        raise ValueError(
            f"{name}: expected [sample], [sample, element], or images [sample, height, width(, channel)], "
            f"got shape {raw.shape} for kind {kind!r}; reshape each sample to one of these"
        )
    present = ~_absent(name, arranged)
    return Modality(_single_precision(name, arranged, present), present, kind)


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


def _absent(name: str, values: np.ndarray) -> np.ndarray:
    rows = values.reshape(len(values), -1)
    infinite, missing = np.isinf(rows).any(1), np.isnan(rows)
    if infinite.any():
        raise ValueError(
            f"{name}: expected finite values, got infinity in {infinite.sum()} of {len(rows)} samples, first in sample "
            f"{infinite.argmax()}; correct them, or set these rows to NaN to mark them as absent"
        )
    partial = missing.any(1) & ~missing.all(1)
    if partial.any():
        raise ValueError(
            f"{name}: expected rows that are complete or NaN throughout (absent), got {partial.sum()} of {len(rows)} "
            f"that are NaN in part, first sample {partial.argmax()}; fill the gaps, or set the whole rows to NaN"
        )
    absent: np.ndarray = missing.all(1)
    return absent


def _single_precision(name: str, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Float32, zero where absent."""
    filled = np.where(present.reshape(-1, *[1] * (values.ndim - 1)), values, 0)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(filled, dtype=np.float32)
    if not np.isfinite(single).all():
        raise ValueError(
            f"{name}: expected values that fit float32 (below 3.4e38), got one of size {np.abs(filled).max():g}; "
            "give them in a larger unit"
        )
    _check_rounding(name, filled[present], single[present])
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
