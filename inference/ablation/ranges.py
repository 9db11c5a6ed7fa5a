"""`FLAG=1e-4..1e-2:log`: the values among which a sweep searches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference.ablation.assignments import assignment, varied

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

__all__ = ["Range", "range_from_text"]

_EXAMPLE = "for example training.learning_rate=1e-4..1e-2:log, training.epochs=5..40 or objective=collapsed,meanfield"


@dataclass(frozen=True)
class Range:
    """Values of a flag.

    Attributes:
        flag: The flag of `inference.svi`.
        low: Lowest value.
        high: Highest value.
        is_log: Whether orders of magnitude count, not differences.
        is_whole: Whether values are whole numbers.
        choices: The values themselves, where they are no interval; then the others say nothing.
    """

    flag: str
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    is_whole: bool = False
    choices: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[str, ...]:
        """The lowest and the highest value, or the choices, as on a command line."""
        number = int if self.is_whole else float
        return self.choices or (str(number(self.low)), str(number(self.high)))

    def distribution(self) -> BaseDistribution:
        """The same for Optuna."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.is_whole:
            return IntDistribution(int(self.low), int(self.high), log=self.is_log)
        return FloatDistribution(self.low, self.high, log=self.is_log)


def range_from_text(text: str) -> Range:
    """The range of `FLAG=LOW..HIGH`, `FLAG=LOW..HIGH:log` or `FLAG=A,B`.

    Whole numbers at both ends make whole numbers.

    Raises:
        ValueError: It is none.

    >>> range_from_text("training.epochs=5..40")
    Range(flag='training.epochs', low=5.0, high=40.0, is_log=False, is_whole=True, choices=())
    """
    flag, value = assignment(text, "sweep")
    if ".." not in value:
        flag, choices = varied(text)
        return Range(flag, choices=choices)
    bounds, colon, scale = value.partition(":")
    low, _, high = bounds.partition("..")
    try:
        found = Range(flag, float(low), float(high), scale == "log", _is_whole(low) and _is_whole(high))
    except ValueError as error:
        raise _refusal(text) from error
    if not _is_usable(found) or scale not in ("log", "") or bool(colon) != bool(scale):
        raise _refusal(text)
    return found


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def _is_usable(found: Range) -> bool:
    """An interval that is not empty; orders of magnitude are of positive numbers."""
    is_interval = math.isfinite(found.low) and math.isfinite(found.high) and found.low < found.high
    return is_interval and (found.low > 0 or not found.is_log)


def _refusal(text: str) -> ValueError:
    return ValueError(f"sweep: expected FLAG=LOW..HIGH, perhaps with :log, got {text!r}; {_EXAMPLE}")
