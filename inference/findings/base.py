"""What a run says, one thing at a time: the record that every finding fills in, and what a page is made of.

`inference/reporting/findings.py` lists the findings; summary.json, the terminal, the page and the figures are loops
over that list. The groups of posterior.nc stand in `inference/reporting/arviz.py`, which needs no torch; the list does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import Caption

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.figure import Figure

__all__ = [
    "Finding",
    "Part",
    "Picture",
    "RunContent",
    "Section",
    "Summary",
    "Table",
]


Summary = Mapping[str, Any]
"""As `summary.json` has it (`inference/store/summary_schema.py`)."""


class Table(NamedTuple):
    """A table; the first column holds names.

    Attributes:
        caption: What a reader must know.
        head: Headings of the columns.
        rows: Texts.
        is_numeric: Whether the other columns hold numbers, which stand to the right.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_numeric: bool = True


class Picture(NamedTuple):
    """A PNG file on the page.

    Attributes:
        title: Heading of its caption; empty: the picture says all itself.
        text: The caption.
        alt: What stands there for those who cannot see it.
        data: The file in base64.
        width: In pixels of a screen.
    """

    title: str
    text: str
    alt: str
    data: str
    width: int


class Part(NamedTuple):
    """A part of a section under a heading of its own; `note` stands beside the heading."""

    title: str
    note: str = ""
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()


class Section(NamedTuple):
    """A section of the page."""

    id: str
    title: str
    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    parts: Sequence[Part] = ()
    texts: Sequence[tuple[str, str]] = ()

    @property
    def is_filled(self) -> bool:
        """Whether there is anything below its title."""
        return any(self[2:])


@dataclass(frozen=True)
class RunContent:
    """Everything that stands on the page.

    Attributes:
        summary: As `summary.json` has it.
        responsibilities: q(N|X), `[n, C]`, cells row-major over the nodes.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        outcome_names: Names of the outcomes of every node.
        facts: Configuration and further facts.
        figures: PNG files.
        later: Results of later commands by the name of the command: parsed JSON.
    """

    summary: Mapping[str, Any]
    responsibilities: np.ndarray
    log_joint: np.ndarray
    outcome_names: tuple[tuple[str, ...], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[Path, ...] = ()
    later: Mapping[str, Any] = field(default_factory=dict)


def _nothing(*_: object) -> tuple[()]:
    return ()


def _no_entries(_: FitArrays) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that a run says, in every form in which it is said; what a run has nothing of is empty.

    Attributes:
        title: What stands before its lines on the terminal.
        entries: Of a fit, entries of `summary.json`; their types stand in `summary_schema`.
        lines: Of a summary, lines on the terminal, which are wrapped.
        sections: Of a run, sections of the page; pictures of the figures are added by the ids of the sections.
        figures: Of a fit and its summary, figures by the names of their files; None: not of this fit.
        captions: What a reader is told beside each figure, by the name of its file, or how it begins.
    """

    title: str = ""
    entries: Callable[[FitArrays], Mapping[str, Any]] = _no_entries
    lines: Callable[[Summary], Iterable[str]] = _nothing
    sections: Callable[[RunContent], Iterable[Section]] = _nothing
    figures: Callable[[FitArrays, Summary | None], Iterable[tuple[str, Figure | None]]] = _nothing
    captions: Mapping[str, Caption] = field(default_factory=dict)
