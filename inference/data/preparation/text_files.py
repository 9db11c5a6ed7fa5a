"""Text files as instruments and spreadsheets write them: encodings, separators, decimal commas."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from inference.results.input_files import MOST_TEXT, read_bytes

__all__ = ["MISSING", "Layout", "read_table", "read_text", "split_fields"]

MISSING = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan"})
"""Entries that stand for no entry; `Na` is sodium."""

_GZIP = b"\x1f\x8b"
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


def read_text(path: Path) -> str:
    """The text in UTF-8, in UTF-16 where the file begins so, else in Windows' western encoding; gzip is unpacked.

    Raises:
        OSError: It can't be read.
        ValueError: It is no text.
    """
    content = read_bytes(path, most=MOST_TEXT)
    if content.startswith(_GZIP):
        content = _unpacked(content)
    if content.startswith(_UTF_16):
        return content.decode("utf-16")
    if b"\0" in content:
        raise ValueError("it is no text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _unpacked(content: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(content)) as file:
            text = file.read(MOST_TEXT + 1)
    except (EOFError, zlib.error) as error:
        raise ValueError("it is a damaged gzip file") from error
    if len(text) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT} bytes when unpacked")
    return text


def split_fields(line: str, separator: str | None) -> list[str]:
    """The fields of a line, stripped; a separator within quotes is none."""
    if separator is None or '"' not in line:
        fields = line.split(separator)
    else:
        try:
            fields = next(csv.reader([line.strip(" ")], delimiter=separator, skipinitialspace=True))
        except csv.Error:  # a field of more than 128 KiB
            fields = line.split(separator)
    return [field.strip().strip('"') for field in fields]


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
