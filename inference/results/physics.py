"""The physical parameters of a fit, with their uncertainty."""

from __future__ import annotations

import numpy as np

from inference.results.arrays import PhysicsArrays

__all__ = ["physical_estimates"]


def physical_estimates(fitted: object, name: str, r: np.ndarray) -> PhysicsArrays | None:
    """None."""
    return None
