"""The standardisation of a modality, fitted to the measured elements of the training samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from inference.data.multimodal import MultimodalData
from inference.data.stored import row_blocks
from models.standardisation import Standardisation, Transform

__all__ = ["Scale", "fit_standardisation"]

_KNEE_QUANTILE = 0.1
_SAMPLE_BYTES = 2**27
_GAUSSIAN_RATIO = 1.4826  # standard deviation of a Gaussian over its median absolute deviation


@dataclass(frozen=True)
class Scale:
    """How a modality is to be scaled.

    Attributes:
        standardise: Subtract the mean and divide by the standard deviation of all elements, after the transform.
        transform: Transform of the values before that.
        knee: Of the `asinh`, in the unit of the data; 0: the 10 % quantile of the sizes of the values.
        robust: Median and 1.4826 times the median distance from it, instead of mean and standard deviation, which a
            single outlier can move anywhere.
    """

    standardise: bool = True
    transform: Transform = "identity"
    knee: float = 0.0
    robust: bool = False


def fit_standardisation(data: MultimodalData, name: str, training: np.ndarray, scale: Scale) -> Standardisation:
    """Standardisation of a modality from its training samples (paper: none is stated; docs/errata.md item 20).

    Args:
        data: The samples.
        name: The modality.
        training: Bool `[sample]`, which samples may be used.
        scale: How to scale.

    Raises:
        ValueError: A logarithm is asked for of values that are not positive.
    """
    _check_domain(data, name, scale)
    shape = Standardisation(transform=scale.transform, knee=_knee(data, name, training, scale))
    if not scale.standardise:
        return shape
    if scale.robust:
        centre, spread = _robust_moments(shape.transformed(_sample(data, name, training)))
    else:
        centre, spread = _moments(lambda: map(shape.transformed, _measured_blocks(data, name, training)))
    return Standardisation(centre, spread or 1.0, shape.transform, shape.knee)


def _measured_blocks(data: MultimodalData, name: str, samples: np.ndarray) -> Iterator[np.ndarray]:
    """Measured values of some of the samples, in float64, some MiB at a time."""
    values, chosen = data.modalities[name], samples & data.present[name]
    for rows in row_blocks(len(values), values.nbytes // len(values)):
        measured = data.measured_rows(name, rows) & chosen[rows].reshape(-1, *[1] * (values.ndim - 1))
        yield values[rows][measured].astype(np.float64)


def _sample(data: MultimodalData, name: str, training: np.ndarray) -> np.ndarray:
    """Measured training values for quantiles: all of them, or of at most some MiB of samples, evenly spread."""
    rows = np.flatnonzero(training & data.present[name])
    most = max(1, _SAMPLE_BYTES // max(data.modalities[name].nbytes // len(training), 1))
    kept = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(int))] if len(rows) else rows
    values = data.modalities[name][kept].astype(np.float64)
    return values[data.measured_rows(name, kept)]


def _check_domain(data: MultimodalData, name: str, scale: Scale) -> None:
    if scale.transform != "log":
        return
    everything = np.ones(data.n_samples, dtype=bool)
    smallest = min((float(x.min()) for x in _measured_blocks(data, name, everything) if x.size), default=np.inf)
    if smallest <= 0:
        raise ValueError(
            f"modality.{name}.transform: expected positive values for log, got {smallest:g}; use asinh, which "
            "takes all values"
        )


def _moments(blocks: Callable[[], Iterator[np.ndarray]]) -> tuple[float, float]:
    """Mean and standard deviation in two passes over blocks of values; the latter is exactly 0 if all are equal."""
    parts = [(part.size, part.sum(), part.min(), part.max()) for part in blocks() if part.size]
    if not parts:
        return 0.0, 0.0
    count, total, lowest, highest = zip(*parts, strict=True)
    mean = float(sum(total) / sum(count))
    squares = sum(float(np.square(part - mean).sum()) for part in blocks())
    return mean, math.sqrt(squares / sum(count)) if min(lowest) < max(highest) else 0.0


def _robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Median, and the standard deviation of a Gaussian with the same median distance from it.

    The standard deviation itself where more than half of the values are equal.
    """
    if not values.size:
        return 0.0, 0.0
    centre = np.median(values)
    return float(centre), float(_GAUSSIAN_RATIO * np.median(np.abs(values - centre))) or float(values.std())


def _knee(data: MultimodalData, name: str, training: np.ndarray, scale: Scale) -> float:
    if scale.transform != "asinh" or scale.knee > 0:
        return scale.knee or 1.0
    sizes = np.abs(_sample(data, name, training))
    knee = float(np.quantile(sizes, _KNEE_QUANTILE)) if sizes.size else 0.0
    return knee or float(sizes.max(initial=0.0)) or 1.0
