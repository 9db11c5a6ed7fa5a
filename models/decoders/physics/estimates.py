"""Physical parameters of every cell with their uncertainty, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["PhysicalEstimates"]


@dataclass(frozen=True, eq=False)
class PhysicalEstimates:
    """What a physics decoder found, in the units of the data.

    Numbers that the data do not determine are NaN, and `status` says why: `too few samples` (fewer than two
    independent ones), `at bound` (the optimum lies on a bound, or peaks and kinks coincide), `not identified` (other
    values of the parameter give the same curve where it was measured).

    Attributes:
        names: Names of the parameters.
        units: Their units.
        value: Estimates, `[C, P]`.
        standard_error: Standard errors, `[C, P]`.
        lower: Lower ends of the intervals, `[C, P]`; inside the bounds.
        upper: Upper ends, `[C, P]`.
        status: `ok` or why there is no interval, strings `[C, P]`.
        curve: The law at the estimates, `[C, D]`.
        curve_lower: Lower ends of the pointwise intervals of the law (not of new measurements), `[C, D]`.
        curve_upper: Upper ends, `[C, D]`.
        effective_samples: Number of independent samples behind each cell, `[C]`.
        level: Probability of the intervals.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    curve: np.ndarray
    curve_lower: np.ndarray
    curve_upper: np.ndarray
    effective_samples: np.ndarray
    level: float
