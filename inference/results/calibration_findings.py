"""Whether q(N|X) says how often it is right, against every known factor by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.results.text import is_number, printable
from inference.results.verdicts import FEW_SCORED, Verdict

__all__ = ["FactorCalibration", "calibrations"]

_CALIBRATED, _MISCALIBRATED = 0.05, 0.1
_LEAST_REDUCTION = 0.5


@dataclass(frozen=True)
class FactorCalibration:
    """Calibration against one factor.

    Attributes:
        factor: Its name; `all factors` for their joint levels, of runs that were scored against no other.
        n_samples: Samples in which it is known.
        error: Expected calibration error; None where it was not computed.
        expected: What it would be on average if q(N|X) were right.
        largest: What it would exceed in one of twenty cases if q(N|X) were right.
        reduction: By which share the clusters reduce the errors of a constant guess (Goodman and Kruskal's λ); None
            where it is not known.
    """

    factor: str
    n_samples: int
    error: float | None
    expected: float
    largest: float
    reduction: float | None = None

    @property
    def skipped(self) -> str:
        """Why the error says nothing of q(N|X); empty where it does.

        Clusters that are other groups than the factor's are wrong about it, however right they are about themselves.
        """
        if self.n_samples < FEW_SCORED:
            return f"{self.n_samples} samples with {self.factor} do not tell it"
        if self.error is None or (self.reduction is not None and self.reduction < _LEAST_REDUCTION):
            return f"the clusters are other groups than those of {self.factor}"
        return ""

    @property
    def verdict(self) -> Verdict:
        """By how far the error is above what chance leaves of a right q(N|X)."""
        if self.skipped or self.error is None:
            return "skipped"
        if self.error <= max(self.largest, self.expected + _CALIBRATED):
            return "passes"
        return "unclear" if self.error <= self.expected + _MISCALIBRATED else "fails"


def calibrations(evaluation: Mapping[str, Any] | None) -> list[FactorCalibration]:
    """Against every factor of the entry `evaluation` of a summary; empty without known factors."""
    scores = evaluation or {}
    if scores.get("factors"):
        return [_of_factor(name, found) for name, found in scores["factors"].items()]
    if scores.get("calibration"):
        return [_made("all factors", scores.get("n_samples", FEW_SCORED), scores["calibration"], None)]
    return []


def _of_factor(name: str, found: Mapping[str, Any]) -> FactorCalibration:
    guess = found["guess"]
    has_reduction = is_number(found["accuracy"]) and guess < 1
    reduction = (found["accuracy"] - guess) / (1 - guess) if has_reduction else 0.0
    return _made(printable(name), found["n_samples"], found["calibration"] or {}, reduction)


def _made(name: str, n_samples: int, found: Mapping[str, Any], reduction: float | None) -> FactorCalibration:
    expected = found.get("ece_if_calibrated") or 0.0
    largest = found.get("ece_95_if_calibrated") or expected
    return FactorCalibration(name, n_samples, found.get("ece"), expected, largest, reduction)
