"""Lines of a table of checks: what was found, how to take it, and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inference.results.text import printable, shorten

__all__ = ["FEW_SCORED", "Line", "Verdict", "counts", "no_better_than", "verdict_table", "worst"]

FEW_SCORED = 25
"""Of fewer samples a share of right ones has a standard error of up to 0.1 and more: no verdict on calibration."""

Verdict = Literal["passes", "unclear", "fails", "skipped"]

_ORDER: tuple[Verdict, ...] = ("skipped", "passes", "unclear", "fails")
_WIDTH = 100
_NAME = 34
_VERDICT = 9


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Attributes:
        key: Its name for machines, unique in a table.
        name: What was looked at.
        found: What was found, in numbers; for `skipped`, why it was not looked at.
        verdict: `passes`, `unclear`, `fails` or `skipped`.
        advice: What to do; empty where there is nothing to be done.
    """

    key: str
    name: str
    found: str
    verdict: Verdict
    advice: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them."""
        return asdict(self)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several, `skipped` where there is none: what is skipped makes nothing better or worse."""
    return max(verdicts, key=_ORDER.index, default="skipped")


def no_better_than(limit: Verdict, verdict: Verdict) -> Verdict:
    """The verdict, or the limit where that is worse; what is skipped stays so."""
    return verdict if verdict == "skipped" else worst((limit, verdict))


def counts(lines: Sequence[Line]) -> str:
    """`3 pass, 1 unclear, 2 fail, 1 skipped`; the last line of a table."""
    number = {verdict: sum(line.verdict == verdict for line in lines) for verdict in _ORDER}
    words = {"passes": "pass", "unclear": "unclear", "fails": "fail", "skipped": "skipped"}
    return ", ".join(f"{number[verdict]} {word}" for verdict, word in words.items() if number[verdict])  # type: ignore[index]


def verdict_table(lines: Sequence[Line]) -> str:
    """Plain text of at most 100 columns, every line with its verdict, what was found below each other, then advice."""
    return "\n".join(text for line in lines for text in _texts(line))


def _texts(line: Line) -> list[str]:
    head = f"{shorten(line.name, _NAME - 1):<{_NAME}}{line.verdict:<{_VERDICT}}"
    found = _wrapped(line.found)
    advice = _wrapped(line.advice, "→ ") if line.advice else []
    indent = " " * (_NAME + _VERDICT)
    return [head + found[0], *(indent + text for text in (*found[1:], *advice))]


def _wrapped(text: str, first: str = "") -> list[str]:
    width = _WIDTH - _NAME - _VERDICT
    return textwrap.wrap(printable(text), width, initial_indent=first, subsequent_indent=" " * len(first)) or [""]
