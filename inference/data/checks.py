"""What must hold of the measured values of a modality: finite, varying, on one scale; codes that are no values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from causalpima.models.decoders.likelihoods import LikelihoodName

__all__ = [
    "LARGEST_COUNT",
    "MAX_CATEGORIES",
    "Sentinel",
    "check_finite",
    "check_support",
    "check_values",
    "find_sentinels",
    "some_of",
]


_MOST_SPREAD = 1e6
_FEWEST = 10
_MOST_SORTED = 1_000_000
_FEWEST_REPEATS, _MOST_LOOKED_AT = 3, 10_000
_FAR, _FAR_OF_CODES = 10.0, 0.25
_CODES = np.array(
    [sign * code for code in (99, 999, 9999, 99999, 999999, 99.9, 999.9, 999.25) for sign in (-1, 1)]
    + [10.0**power * sign for power in range(10, 38) for sign in (-1, 1)]
    + [-32768, 32767, -(2**31), 2**31 - 1, 9.969209968386869e36]
)


class Sentinel(NamedTuple):
    """A value that may stand for "not measured".

    Attributes:
        value: The value.
        share: How many of the values are exactly it, from 0 to 1.
        lowest: The smallest of the others.
        highest: The largest of the others.
    """

    value: float
    share: float
    lowest: float
    highest: float


def find_sentinels(some: np.ndarray) -> list[Sentinel]:
    """Extremes that are repeated exactly and lie away from all other values.

    A measurement at its limit is next to others; what is away from them by ten times their range is no part of them.
    For a code that people write (-999, 9999, 1e20) a quarter of their range is enough, or that it alone is negative.
    Zero is none: nothing may have been measured.

    Args:
        some: Enough of the measured values.
    """
    rest = np.sort(some)
    found: list[tuple[float, float]] = []
    while (end := _end_away(rest)) is not None:
        found.append((float(end[0]), len(end) / some.size))
        rest = rest[rest != end[0]]
    return [Sentinel(value, share, float(rest[0]), float(rest[-1])) for value, share in found]


def _end_away(ordered: np.ndarray) -> np.ndarray | None:
    """The equal values at one end that are away from all others; None: at neither end."""
    n_low = int(np.searchsorted(ordered, ordered[:1], "right").sum())
    n_high = len(ordered) - int(np.searchsorted(ordered, ordered[-1:]).sum())
    for same, others in ((ordered[:n_low], ordered[n_low:]), (ordered[-n_high:], ordered[:-n_high])):
        if len(same) >= _FEWEST_REPEATS and len(others) and others[0] < others[-1] and _is_away(float(same[0]), others):
            return same
    return None


def _is_away(value: float, others: np.ndarray) -> bool:
    lowest, highest = float(others[0]), float(others[-1])
    distance = lowest - value if value < lowest else value - highest
    if np.isclose(value, _CODES, rtol=1e-6, atol=0).any():
        return distance > _FAR_OF_CODES * (highest - lowest) or value < 0 <= lowest
    return value != 0 and distance > _FAR * (highest - lowest) and len(np.unique(others[:_MOST_LOOKED_AT])) >= _FEWEST


def some_of(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Measured values, at most a million of them, evenly from all."""
    every = max(1, values.size // _MOST_SORTED)
    return values.reshape(-1)[::every][measured.reshape(-1)[::every]]


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
    outlier = find_outlier(some_of(values, measured), float(lowest), float(highest))
    if outlier is not None:
        raise outlier_error(name, outlier, int(np.nonzero((values == outlier[0]) & measured)[0][0]))
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
    codes = [sentinel.value for sentinel in find_sentinels(some)]
    ordered = np.sort(some[~np.isin(some, codes)] if codes else some).astype(np.float64)
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


# Whether values are such that a likelihood can have produced them.


LARGEST_COUNT = 2**24  # above, single precision does not hold every whole number
MAX_CATEGORIES = 1000


class _Support(NamedTuple):
    expected: str
    contains: Callable[[np.ndarray], np.ndarray]


def _whole_up_to(highest: int) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: (values >= 0) & (values <= highest) & (values == np.floor(values))


_COUNTS = _Support(f"whole numbers >= 0 and <= {LARGEST_COUNT}", _whole_up_to(LARGEST_COUNT))
_NUMBERS = _Support("finite numbers", np.isfinite)
_SUPPORTS: dict[LikelihoodName, _Support] = {
    "normal": _NUMBERS,
    "student_t": _NUMBERS,
    "bernoulli": _Support("zeros and ones", lambda values: (values == 0) | (values == 1)),
    "categorical": _Support(f"codes 0, 1, ..., below {MAX_CATEGORIES}", _whole_up_to(MAX_CATEGORIES - 1)),
    "poisson": _COUNTS,
    "negative_binomial": _COUNTS,
}


def check_support(
    name: str, likelihood: LikelihoodName, values: np.ndarray, observed: np.ndarray | None = None, first: int = 0
) -> int:
    """Refuse measured values outside the support of a likelihood.

    Args:
        name: Name of the modality, for the message.
        likelihood: Its likelihood.
        values: `[sample, *event]`, in the unit of the data; of a batch, if they are read in batches.
        observed: Bool, which elements were measured, `[sample, *event]` or, for whole samples, `[sample]`; None: all.
        first: Position of the first of these samples in the data set, for the message.

    Returns:
        Number of categories K for `categorical`, one more than the largest code, at least 2 (of batches: the largest
        counts); 1 for every other likelihood, and where nothing was measured.

    Raises:
        ValueError: A measured value is not in the support; the first such sample is named.
    """
    support, measured = _SUPPORTS[likelihood], _everywhere(values, observed)
    wrong = measured & ~support.contains(values)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"{name}: expected {support.expected} for likelihood {likelihood}, got {values[place]:g} "
            f"in sample {first + place[0]}; choose another likelihood"
        )
    if likelihood != "categorical" or not measured.any():
        return 1
    return max(int(values[measured].max()) + 1, 2)


def _everywhere(values: np.ndarray, observed: np.ndarray | None) -> np.ndarray:
    """Which elements were measured, of the shape of the values."""
    if observed is None:
        return np.ones(values.shape, dtype=bool)
    observed = observed.reshape(observed.shape + (1,) * (values.ndim - observed.ndim))
    return np.broadcast_to(observed, values.shape)
