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
    check_varies(name, float(lowest), float(highest))
    every = max(1, values.size // _MOST_SORTED)
    some = values.reshape(-1)[::every][measured.reshape(-1)[::every]]
    outlier = find_outlier(some, float(lowest), float(highest))
    if outlier is not None:
        raise outlier_error(name, outlier, int(np.nonzero((values == np.float32(outlier[0])) & measured)[0][0]))
    if is_vector:
        check_elements(name, _standard_deviations(values.astype(np.float64), measured))


def check_varies(name: str, lowest: float, highest: float) -> None:
    """Refuse values that are all the same.

    Raises:
        ValueError: They are.
    """
    if lowest == highest:
        raise ValueError(f"{name}: expected values that vary, got {lowest:g} everywhere; leave this modality out")


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


def find_outlier(some: np.ndarray, lowest: float, highest: float) -> tuple[float, float, float] | None:
    """An extreme so far out that all other values are one point after standardising, and the range of nearly all.

    Args:
        some: Enough of the values to know that range.
        lowest: The smallest of all values.
        highest: The largest of all values.
    """
    if len(some) < _FEWEST:
        return None
    ordered = np.sort(some).astype(np.float64)
    cut = max(1, len(ordered) // 1000)
    low, high = float(ordered[cut]), float(ordered[-1 - cut])
    if high == low or highest - lowest <= _MOST_SPREAD * (high - low):
        return None
    return (highest if highest - high > low - lowest else lowest), low, high


def outlier_error(name: str, outlier: tuple[float, float, float], sample: int) -> ValueError:
    """What is said of what `find_outlier` found, in this sample."""
    value, low, high = outlier
    return ValueError(
        f"{name}: expected values on one scale, got {value:g} in sample {sample} where nearly all are from "
        f"{low:g} to {high:g}; correct it, set it to NaN, or give logarithms"
    )


def check_elements(name: str, spreads: np.ndarray) -> None:
    """Refuse a vector whose elements have standard deviations in two clusters, far apart.

    Args:
        name: The modality.
        spreads: Standard deviation of each element.

    Raises:
        ValueError: One cluster would drown in the other.
    """
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
