"""A variable as it was read, whatever it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference.data.multimodal import Axis, Dimensions

__all__ = ["MASK_SUFFIX", "Variable"]

MASK_SUFFIX = "_mask"


@dataclass(frozen=True)
class Variable:
    """Values with what is known about them.

    Attributes:
        values: What NumPy or torch takes for an array, samples first.
        role: `modality`, `label`, `group`, `covariate` or `environment`, where the source says so.
        kind: `image`, `curve` or `vector`, where the source says so.
        unit: Unit of the values; empty if there is none.
        axis: The positions of a curve, where the source has them.
        dimensions: Names of the dimensions of one sample, where the source has them, in the order of the values.
    """

    values: Any
    role: str | None = None
    kind: str | None = None
    unit: str = ""
    axis: Axis | None = None
    dimensions: Dimensions | None = None
