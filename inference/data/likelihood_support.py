"""Whether values are such that a likelihood can have produced them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.decoders.likelihoods import LikelihoodName

__all__ = ["LARGEST_COUNT", "MAX_CATEGORIES", "check_support"]

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
