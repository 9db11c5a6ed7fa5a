"""Names that come from the user's data, made fit for a page, a figure or a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

__all__ = [
    "cell_names",
    "format_count",
    "format_number",
    "format_r2",
    "format_value",
    "is_number",
    "printable",
    "shorten",
]


def printable(text: object) -> str:
    """The text on one line, with characters that a terminal would obey replaced by `?`."""
    return "".join(character if character.isprintable() else "?" for character in " ".join(str(text).split()))


def shorten(text: object, width: int) -> str:
    """At most `width` characters; the middle goes first, since long names differ at their ends.

    >>> shorten("yield_strength_longitudinal", 12)
    'yield_…dinal'
    """
    line = printable(text)
    if len(line) <= width:
        return line
    tail = (width - 1) // 2
    return line[: width - 1 - tail] + "…" + line[len(line) - tail :]


def cell_names(outcome_names: Sequence[Sequence[str]], width: int = 12) -> tuple[str, ...]:
    """Name of every cell by its outcomes, row-major over `[C_1, ..., C_L]`.

    >>> cell_names((("0", "1"), ("soft", "stiff")))
    ('(0, soft)', '(0, stiff)', '(1, soft)', '(1, stiff)')
    """
    return tuple(_tuple_name(shorten(name, width) for name in outcomes) for outcomes in product(*outcome_names))


def is_number(value: Any) -> bool:
    """Whether the value is a finite number; None and NaN stand for 'unknown' in a summary."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def format_number(value: Any, digits: int = 3, unknown: str = "-") -> str:
    """A number with fixed digits, or `unknown` where there is none."""
    return f"{value:.{digits}f}" if is_number(value) else unknown


def format_value(value: float, digits: int = 4, apart: float = 0.0) -> str:
    """A number with so many significant digits, or with more where it stands beside others that differ by less.

    Args:
        value: The number.
        digits: How many at least.
        apart: By how much the numbers beside it differ; 0 or NaN: there are none, or they do not.

    >>> format_value(71.2345), format_value(1073741824.3125, apart=0.5)
    ('71.23', '1073741824.31')
    """
    if value and apart > 0 and math.isfinite(value) and math.isfinite(apart):
        digits = max(digits, min(17, math.floor(math.log10(abs(value))) - math.floor(math.log10(apart)) + 2))
    return f"{value:.{digits}g}"


def format_r2(value: Any, standard_error: Any = None) -> str:
    """A coefficient of determination; below zero the prediction is worse than the mean, and that is said.

    >>> format_r2(0.9, 0.01), format_r2(-9.65)
    ('0.900 ± 0.010', '-9.650 (worse than the mean)')
    """
    beside = f" ± {format_number(standard_error)}" if is_number(standard_error) else ""
    worse = " (worse than the mean)" if is_number(value) and value < 0 else ""
    return f"{format_number(value)}{beside}{worse}"


def format_count(count: int) -> str:
    """A count in full up to a million, beyond that its order of magnitude (labellings exceed every float).

    >>> format_count(840), format_count(54_486_432_000)
    ('840', 'about 10^10')
    """
    return str(count) if count < 10**6 else f"about 10^{int(math.log10(count))}"


def _tuple_name(names: Iterable[str]) -> str:
    return "(" + ", ".join(names) + ")"
