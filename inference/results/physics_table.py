"""The physical parameters of a summary as words: values with their standard errors, cells in rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from inference.results.text import is_number, printable

__all__ = ["estimate_text", "format_estimate", "interval_text", "parameter_headings", "physics_by_cell"]

_Entry = Mapping[str, Any]
_SHORT = {"too few samples": "too few"}
_PLAIN_POWER = 6
_MOST_DECIMALS = 9


def physics_by_cell(modality: Mapping[str, Any]) -> Mapping[str, Mapping[str, _Entry]]:
    """The entries of a modality of the summary, by cell and parameter; empty without a law per cell."""
    return modality.get("physics") or {}


def parameter_headings(cells: Mapping[str, Mapping[str, _Entry]]) -> list[tuple[str, str]]:
    """Name and unit of each parameter."""
    return [
        (printable(name), printable(entry.get("unit", ""))) for name, entry in next(iter(cells.values()), {}).items()
    ]


def estimate_text(entry: Mapping[str, Any]) -> str:
    """`2.130 ± 0.040`; without a standard error the value and why there is none."""
    value: Any = entry.get("value")
    error: Any = entry.get("standard_error")
    if not is_number(value):
        return "-"
    if is_number(error):
        return format_estimate(value, error)
    status = printable(entry.get("status", ""))
    return f"{value:.3g} ({_SHORT.get(status, status)})"


def format_estimate(value: float, error: float) -> str:
    """Value and standard error to the second digit of the error, in powers of ten where numbers get long.

    >>> format_estimate(2.1304, 0.0415), format_estimate(71234.0, 1234.0), format_estimate(2.5e-7, 3e-9)
    ('2.130 ± 0.042', '71200 ± 1200', '(2.500 ± 0.030)e-07')
    """
    largest = max(abs(value), error)
    power = math.floor(math.log10(largest)) if largest > 0 else 0
    if not -4 <= power < _PLAIN_POWER:
        scale = 10.0**power
        return f"({_plain(value / scale, error / scale)})e{power:+03d}"
    return _plain(value, error)


def interval_text(entry: _Entry) -> str:
    """The interval in brackets after a space; empty where there is none."""
    lower, upper = entry.get("lower"), entry.get("upper")
    return f" [{lower:.4g}, {upper:.4g}]" if is_number(lower) and is_number(upper) else ""


def _plain(value: float, error: float) -> str:
    # Of the rounded error: 0.0996 is 0.10.
    decimals = 1 - math.floor(math.log10(float(f"{error:.1e}"))) if error > 0 else 3
    decimals = min(decimals, _MOST_DECIMALS)
    shown = [f"{round(number, decimals):.{max(decimals, 0)}f}" for number in (value, error)]
    return " ± ".join(shown)
