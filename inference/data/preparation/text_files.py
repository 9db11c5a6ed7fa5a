"""Text files as instruments and spreadsheets write them: encodings, separators, decimal commas."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

__all__ = ["LAYOUTS", "MISSING", "Layout", "parse_numbers", "read_table", "read_text"]

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan"})
"""Entries that stand for no entry; `Na` is sodium."""

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Layout:
    """How a line is cut into fields and fields into digits.

    Attributes:
        separator: Between fields; None for any white space.
        decimal: `.` or `,`.
    """

    separator: str | None
    decimal: str


# A comma separates only where it is no decimal comma; the first of equally good layouts is taken.
LAYOUTS = (
    Layout(";", "."),
    Layout(";", ","),
    Layout("\t", "."),
    Layout("\t", ","),
    Layout(",", "."),
    Layout(None, "."),
    Layout(None, ","),
)


def read_text(path: Path) -> str:
    """The text in UTF-8, in UTF-16 where the file begins so, else in Windows' western encoding.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    content = path.read_bytes()
    if content.startswith(_UTF_16):
        return content.decode("utf-16")
    if b"\0" in content:
        raise ValueError("it is no text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def parse_numbers(line: str, layout: Layout) -> list[float] | None:
    """The numbers of a line, or None where something else stands on it; separators at its end count for nothing."""
    fields = line.strip().rstrip(layout.separator or " ").split(layout.separator)
    try:
        return [float(field.strip().strip('"').replace(layout.decimal, ".")) for field in fields]
    except ValueError:
        return None


def read_table(lines: Sequence[str], layout: Layout, *, as_text: bool) -> pd.DataFrame:
    """The lines as a table without a header; empty cells are NaN, or empty text.

    Args:
        lines: Lines, all of the table.
        layout: Separator and decimal sign.
        as_text: Leave every entry as it stands.

    Raises:
        ValueError: Lines of more fields than the first has, or no line.
    """
    how = {"dtype": str, "keep_default_na": False} if as_text else {"decimal": layout.decimal}
    separator = r"\s+" if layout.separator is None else layout.separator
    stream = io.StringIO("\n".join(lines))
    return pd.read_csv(stream, sep=separator, header=None, index_col=False, skipinitialspace=True, **how)
