"""What one diagnostic found: plain values for machines, lines for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from inference.results.verdicts import Line

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """One entry of the result.

    Attributes:
        lines: Lines of the table.
        values: Plain values by the key of the result that they belong to.
    """

    lines: tuple[Line, ...]
    values: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def skipped(cls, key: str, name: str, reason: str, advice: str = "") -> Finding:
        """One line that says why there is nothing."""
        return cls((Line(key, name, reason, "skipped", advice),), {})
