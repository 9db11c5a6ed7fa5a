"""The standardisation of a modality, fitted to the measured elements of the training samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inference.data.multimodal import MultimodalData
from models.standardisation import Standardisation, Transform

__all__ = ["Scale", "fit_standardisation"]

_KNEE_QUANTILE = 0.1
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
    values = _measured_values(data, name, training)
    shape = Standardisation(transform=scale.transform, knee=_knee(values, scale))
    if not scale.standardise or not values.size:
        return shape
    transformed = shape.transformed(values)
    centre, spread = _robust_moments(transformed) if scale.robust else (transformed.mean(), transformed.std())
    varies = transformed.min() < transformed.max() and spread > 0
    return Standardisation(float(centre), float(spread) if varies else 1.0, shape.transform, shape.knee)


def _robust_moments(values: np.ndarray) -> tuple[float, float]:
    """Median, and the standard deviation of a Gaussian with the same median distance from it.

    The standard deviation itself where more than half of the values are equal.
    """
    centre = np.median(values)
    return float(centre), float(_GAUSSIAN_RATIO * np.median(np.abs(values - centre))) or float(values.std())


def _measured_values(data: MultimodalData, name: str, samples: np.ndarray) -> np.ndarray:
    rows = samples & data.present[name]
    values = data.modalities[name][rows].astype(np.float64)
    return values[data.observed[name][rows]] if name in data.observed else values


def _check_domain(data: MultimodalData, name: str, scale: Scale) -> None:
    if scale.transform != "log":
        return
    values = data.modalities[name][data.measured(name)]
    if values.size and values.min() <= 0:
        raise ValueError(
            f"modality.{name}.transform: expected positive values for log, got {values.min():g}; use asinh, which "
            "takes all values"
        )


def _knee(values: np.ndarray, scale: Scale) -> float:
    if scale.transform != "asinh":
        return 1.0
    if scale.knee > 0:
        return scale.knee
    sizes = np.abs(values)
    knee = float(np.quantile(sizes, _KNEE_QUANTILE)) if sizes.size else 0.0
    return knee or float(sizes.max(initial=0.0)) or 1.0
