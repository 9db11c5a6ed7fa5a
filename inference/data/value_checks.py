"""What must hold of the measured values of a modality: finite, varying, and on one scale."""

from __future__ import annotations

import numpy as np

__all__ = ["check_finite", "check_values"]

_MOST_SPREAD = 1e6
_FEWEST = 10
_MOST_SORTED = 1_000_000


def check_values(name: str, values: np.ndarray, measured: np.ndarray, is_vector: bool) -> None:
    """Refuse values that nothing can be learned from.

    Args:
        name: The modality.
        values: `[sample, *shape]`.
        measured: Which elements count, bool of the same shape.
        is_vector: Whether the elements are quantities of their own; those of images and curves share one scale.

    Raises:
        ValueError: NaN or infinity, the same value everywhere, or scales so far apart that one drowns in the other.
    """
    check_finite(name, values)
    lowest = values.min(where=measured, initial=np.inf)
    highest = values.max(where=measured, initial=-np.inf)
    if lowest == highest:
        raise ValueError(f"{name}: expected values that vary, got {lowest:g} everywhere; leave this modality out")
    _check_outliers(name, values, measured, float(lowest), float(highest))
    if is_vector:
        _check_elements(name, values, measured)


def check_finite(name: str, values: np.ndarray) -> None:
    """Refuse NaN and infinity, which no array of `MultimodalData` holds.

    Raises:
        ValueError: There are some.
    """
    if not np.isfinite(values).all():
        raise ValueError(
            f"{name}: expected finite values where measured, got NaN or infinity; mark these elements as missing, "
            "or leave them out"
        )


def _check_outliers(name: str, values: np.ndarray, measured: np.ndarray, lowest: float, highest: float) -> None:
    """A few values so large that all others are one point after standardising."""
    every = max(1, values.size // _MOST_SORTED)
    ordered = np.sort(values.reshape(-1)[::every][measured.reshape(-1)[::every]]).astype(np.float64)
    cut = max(1, len(ordered) // 1000)
    if len(ordered) < _FEWEST:
        return
    low, high = ordered[cut], ordered[-1 - cut]
    if high > low and highest - lowest > _MOST_SPREAD * (high - low):
        outlier = highest if highest - high > low - lowest else lowest
        sample = int(np.nonzero((values == np.float32(outlier)) & measured)[0][0])
        raise ValueError(
            f"{name}: expected values on one scale, got {outlier:g} in sample {sample} where nearly all are from "
            f"{low:g} to {high:g}; correct it, set it to NaN, or give logarithms"
        )


def _check_elements(name: str, values: np.ndarray, measured: np.ndarray) -> None:
    """Elements of a vector whose standard deviations are in two clusters, far apart."""
    spreads = _standard_deviations(values.astype(np.float64), measured)
    order = np.argsort(spreads)
    order = order[spreads[order] > 0]
    steps = spreads[order[1:]] / spreads[order[:-1]]
    if steps.size and steps.max() > _MOST_SPREAD:
        small, large = order[steps.argmax()], order[steps.argmax() + 1]
        raise ValueError(
            f"{name}: expected elements on one scale, got standard deviations of {spreads[small]:g} (element {small}) "
            f"and {spreads[large]:g} (element {large}); make them variables of their own, or change their units"
        )


def _standard_deviations(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Of each element, over the samples that have it; zero for one that is never measured."""
    count = np.maximum(measured.sum(0), 1)
    mean = values.sum(0, where=measured) / count
    return np.sqrt(np.square(values - mean).sum(0, where=measured) / count)
