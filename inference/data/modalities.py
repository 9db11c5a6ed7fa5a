"""One array of measurements as a modality: numbers, presence, gaps, shape and kind."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.data.multimodal import ModalityKind, measured_elements

__all__ = [
    "Modality",
    "arrange",
    "arranged_names",
    "check_finite",
    "modality_kind",
    "needs_double",
    "not_real",
    "to_modality",
    "to_single",
]

_CHANNELS = (1, 3, 4)
_MOST_ROUNDING = 0.01
_FEWEST_UNITS = 4


class Modality(NamedTuple):
    """One entry of `MultimodalData`: values, bool `[sample]`, kind, and, with gaps, bool `[sample, ...]`."""

    values: np.ndarray
    present: np.ndarray
    kind: ModalityKind
    observed: np.ndarray | None = None


def to_modality(name: str, values: Any, kind: str | None = None, mask: Any = None, exact: bool = False) -> Modality:
    """Make a modality from anything that NumPy or torch takes for an array of numbers.

    Elements that are NaN, masked in a masked array, or zero in the mask are missing; a sample that lacks all of them is
    absent.

    Args:
        name: Name for messages.
        values: `[sample]`; `[sample, element]`; images `[sample, height, width]`, `[sample, height, width, channel]`
            or, where only that reading gives 1, 3 or 4 channels, `[sample, channel, height, width]`.
        kind: Default: two dimensions are a vector, more are an image.
        mask: What was measured, see `measured_elements`.
        exact: Hold values in float64 if they have more digits than float32; else where it must be (`needs_double`).

    Raises:
        ValueError: Not numbers, no values, more dimensions than an image has, infinite values, values beyond float32,
            or a mask that does not fit.
    """
    raw = _numbers(name, values)
    shown = modality_kind(name, kind, raw.shape)
    arranged = arrange(raw, shown)
    measured = arrange(measured_elements(name, raw, mask), shown)
    check_finite(name, (np.isinf(arranged) & measured).reshape(len(raw), -1).any(1))
    return _with_presence(_in_precision(name, arranged, measured, exact), measured, shown)


def modality_kind(name: str, kind: str | None, shape: tuple[int, ...]) -> ModalityKind:
    """How an array of this shape is shown.

    Raises:
        ValueError: No values, no kind, or a shape that this kind does not have.
    """
    if not shape or 0 in shape:
        raise ValueError(f"{name}: expected at least 2 samples with values, [sample, ...], got shape {shape}")
    known: dict[str | None, ModalityKind] = {choice: choice for choice in get_args(ModalityKind)}
    known[None] = "vector" if len(shape) <= 2 else "image"
    if kind not in known:
        raise ValueError(f"{name}: expected the kind {', '.join(get_args(ModalityKind))}, got {kind!r}")
    if len(shape) not in ((3, 4) if known[kind] == "image" else (1, 2)):
        raise ValueError(
            f"{name}: expected [sample], [sample, element], or images [sample, height, width(, channel)], "
            f"got shape {shape} for kind {known[kind]!r}; reshape each sample to one of these"
        )
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
        raise not_real(name, array.dtype)
    return array


def not_real(name: str, dtype: np.dtype) -> ValueError:
    """What is said of values that are no real numbers."""
    hint = f"; a known factor is named by --labels {name}" if dtype.kind in "UST" else ""
    return ValueError(f"{name}: expected real numbers, got {dtype}; convert them, or leave this variable out{hint}")


def _array(values: Any) -> np.ndarray:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return np.asarray(values.float() if values.dtype == torch.bfloat16 else values)
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biuf":
        return np.ma.filled(values.astype(np.result_type(values.dtype, np.float32)), np.nan)
    return np.asarray(values)


def arrange(values: np.ndarray, kind: ModalityKind) -> np.ndarray:
    """Elements or channels as the last dimension; other numbers of dimensions stay as they are.

    Args:
        values: Some samples, the first dimension.
        kind: How they are shown.
    """
    if values.ndim == 1 or (values.ndim == 3 and kind == "image"):
        return values[..., np.newaxis]
    return np.moveaxis(values, 1, -1) if _has_channels_first(values.shape) else values


def arranged_names(names: tuple[str, ...], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the dimensions of a sample in the order that `arrange` gives them.

    Args:
        names: Before.
        shape: Shape of all samples before, `[sample, ...]`.
    """
    return (*names[1:], names[0]) if _has_channels_first(shape) else names


def _has_channels_first(shape: tuple[int, ...]) -> bool:
    return len(shape) == 4 and shape[1] in _CHANNELS and shape[-1] not in _CHANNELS


def check_finite(name: str, infinite: np.ndarray) -> None:
    """Refuse infinite values.

    Args:
        name: The modality.
        infinite: Which samples have some, bool `[sample]`.

    Raises:
        ValueError: Some do.
    """
    if infinite.any():
        raise ValueError(
            f"{name}: expected finite values, got infinity in {infinite.sum()} of {len(infinite)} samples, first in "
            f"sample {infinite.argmax()}; correct them, or set them to NaN to mark them as missing"
        )


def _with_presence(values: np.ndarray, measured: np.ndarray, kind: ModalityKind) -> Modality:
    rows = measured.reshape(len(measured), -1)
    present, complete = np.any(rows, axis=1), np.all(rows, axis=1)
    has_gaps = bool((present & ~complete).any())
    return Modality(values, present, kind, np.array(measured, order="C") if has_gaps else None)


def _in_precision(name: str, values: np.ndarray, measured: np.ndarray, exact: bool) -> np.ndarray:
    """Zero where nothing was measured; in float64 if `exact`, or where float32 loses what the values vary by."""
    filled, single = to_single(name, values, measured)
    if np.can_cast(values.dtype, np.float32) or not measured.any():
        return single
    double = np.ascontiguousarray(filled, dtype=np.float64)
    lost, size = float(np.abs(single - double).max()), float(np.abs(double).max())
    return double if exact or needs_double(name, float(double[measured].std()), lost, size) else single


def to_single(name: str, values: np.ndarray, measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values with zeros where nothing was measured, as they are and in float32.

    Raises:
        ValueError: One of them is beyond float32.
    """
    filled = np.where(measured, values, 0)
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(filled, dtype=np.float32)
    if not np.isfinite(single).all():
        raise ValueError(
            f"{name}: expected values that fit float32 (below 3.4e38), got one of size {np.abs(filled).max():g}; "
            "give them in a larger unit"
        )
    return filled, single


def needs_double(name: str, spread: float, lost: float, size: float) -> bool:
    """Whether float32 rounds away what values vary by: more than a hundredth of their standard deviation.

    They are then held in float64, and an offset is subtracted before they become float32 on the scale of the model. A
    spread of less than four units in the last place of float64 is no variation, but its rounding.

    Args:
        name: The modality.
        spread: Standard deviation of its values.
        lost: Largest difference between a value and the same in float32.
        size: Largest size of a value.

    Raises:
        ValueError: They vary by less than the smallest numbers of float32.
    """
    if lost <= _MOST_ROUNDING * spread or spread < _FEWEST_UNITS * np.spacing(size):
        return False
    if spread < np.finfo(np.float32).tiny:
        raise ValueError(
            f"{name}: expected a standard deviation that fits float32 (above 1.2e-38), got {spread:g}; give the values "
            "in a smaller unit"
        )
    return True
