"""The table at the end of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from causalpima.inference.findings.clusters import (
    fit_verdict,
)
from causalpima.inference.reporting.findings import FINDINGS

__all__ = [
    "summary_table",
]


_WIDTH = 80
_INDENT = 11
_NAME_WIDTH = 18
_MOST_EDGES = 12
_COLUMNS = (26, 10, 16, 17)


def summary_table(summary: Mapping[str, Any]) -> str:
    """The summary for people: plain text, the verdict first, at most 80 columns unless the path itself is longer.

    Sections that the summary has no entries for are left out: a diverged run has no clusters, data without known
    factors have no scores.
    """
    sections = {
        "Verdict": _verdict(summary),
        **{finding.title: finding.lines(summary) for finding in FINDINGS if finding.title},
        "Files": [str(summary["output_dir"])] if summary.get("output_dir") else [],
    }
    return "\n".join(line for title, texts in sections.items() for line in _section(title, texts))


def _verdict(summary: Mapping[str, Any]) -> list[str]:
    """The state, then a point for each reason."""
    found = fit_verdict(summary)
    points = (textwrap.wrap(f"- {r}", _WIDTH - _INDENT, subsequent_indent="  ") for r in found.reasons)
    return [found.state, *(line for lines in points for line in lines)]


def _section(title: str, texts: Iterable[str]) -> list[str]:
    lines = [line for text in texts if text for line in _wrap(text)]
    return [f"{title if i == 0 else '':<{_INDENT}}{line}" for i, line in enumerate(lines)]


def _wrap(text: str) -> list[str]:
    """Lines that fit; words are not broken, so that a long path can be copied."""
    width = _WIDTH - _INDENT
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
