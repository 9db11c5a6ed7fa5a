"""What a page is made of: sections with sentences, tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Part", "Picture", "Section", "Table"]


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
