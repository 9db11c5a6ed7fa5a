"""The scale on which a modality is modelled, and the way back to the units of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

__all__ = ["Standardisation", "Transform"]

Transform = Literal["identity", "log", "asinh"]


@dataclass(frozen=True)
class Standardisation:
    r"""`y = (T(x) - loc) / scale`, one transform, mean and standard deviation for all elements of a modality.

    `identity`: T(x) = x. `log`: T(x) = log x, for positive values over decades. `asinh`: T(x) = asinh(x / knee), linear
    below the knee and logarithmic above it, for values over decades that touch zero.

    Attributes:
        loc: Mean of T(x), in the transformed unit.
        scale: Standard deviation of T(x), in the transformed unit; 1 if it is not standardised.
        transform: T.
        knee: Where `asinh` turns from linear to logarithmic, in the unit of the data.
    """

    loc: float = 0.0
    scale: float = 1.0
    transform: Transform = "identity"
    knee: float = 1.0

    def apply(self, value: Any) -> Any:
        """To the scale of the model; a tensor or an array, any shape."""
        return (self.transformed(value) - self.loc) / self.scale

    def invert(self, standardised: Any) -> Any:
        """To the unit of the data; a tensor or an array, any shape."""
        library, value = _library(standardised), standardised * self.scale + self.loc
        if self.transform == "log":
            return library.exp(value)
        return self.knee * library.sinh(value) if self.transform == "asinh" else value

    def transformed(self, value: Any) -> Any:
        """T(x)."""
        if self.transform == "log":
            return _library(value).log(value)
        return _library(value).arcsinh(value / self.knee) if self.transform == "asinh" else value

    def log_derivative(self, value: Any) -> Any:
        """log |dy / dx| of every element: what a log-density of y lacks to be one of x."""
        library = _library(value)
        log_scale = float(np.log(self.scale))
        if self.transform == "log":
            return -library.log(value) - log_scale
        if self.transform == "asinh":
            return -0.5 * library.log(value * value + self.knee**2) - log_scale
        return library.zeros_like(value) - log_scale


def _library(value: Any) -> Any:
    return torch if isinstance(value, Tensor) else np
