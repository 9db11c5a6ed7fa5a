"""Numbers as people and instruments write them: decimal signs, thousands separators and limits of detection."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from causalpima.inference.store.input_files import MOST_TEXT, read_bytes

__all__ = [
    "MISSING",
    "DecimalSign",
    "Header",
    "Layout",
    "clean_name",
    "decimal_signs",
    "is_number",
    "parse_header",
    "parse_number",
    "read_table",
    "read_text",
    "split_fields",
    "split_limit",
    "whole_numbers",
]


_SPACES = " '\u2019\u00a0\u2009\u202f"
_OTHER = {".": ",", ",": "."}
_PATTERNS = {
    sign: re.compile(
        rf"[+-]?(?:(?:\d+(?:[{sign}]\d*)?|[{sign}]\d+)(?:[eEdD][+-]?\d+)?"
        rf"|[1-9]\d{{0,2}}(?P<mark>[{other}{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*(?:[{sign}]\d*)?)",
        re.ASCII,
    )
    for sign, other in _OTHER.items()
}
_LIMIT = re.compile(r"(<=|>=|[<>\u2264\u2265])\s*(.+)")
_MOSTLY = 0.5


def parse_number(entry: str, decimal: str = ".") -> float | None:
    """The finite number that stands there, else None; thousands may be set apart, in groups of three digits.

    >>> parse_number("2,5", ","), parse_number("1e3"), parse_number("1'234.5"), parse_number("n.d.")
    (2.5, 1000.0, 1234.5, None)
    """
    text = entry.strip().replace("\u2212", "-")
    match = _PATTERNS[decimal].fullmatch(text)
    if match is None:
        return None
    digits = text.replace(match["mark"], "") if match["mark"] else text
    value = float(digits.replace(decimal, ".").replace("D", "e").replace("d", "e"))
    return value if np.isfinite(value) else None


def is_number(entry: str) -> bool:
    """Whether a number stands there, with either decimal sign."""
    return parse_number(entry, ".") is not None or parse_number(entry, ",") is not None


def split_limit(entry: str) -> tuple[str, str]:
    """The sign of a limit of detection and what stands behind it; no sign where there is none.

    >>> split_limit("< 0.05"), split_limit("0.05")
    (('<', '0.05'), ('', '0.05'))
    """
    match = _LIMIT.fullmatch(entry.strip())
    return (match[1], match[2]) if match else ("", entry)


@dataclass(frozen=True)
class DecimalSign:
    """How the numbers of a column are written.

    Attributes:
        sign: `.` or `,`.
        doubt: Why it cannot be told, in words; empty where it can.
        note: What it rests on where its own numbers do not tell.
    """

    sign: str
    doubt: str = ""
    note: str = ""


def decimal_signs(columns: Sequence[Sequence[str]], separator: str | None, places: Sequence[str]) -> list[DecimalSign]:
    """Decimal sign of every column, from its own numbers, else from those of the other columns.

    `1.18` has one reading, `1.050` two: 1.05 or 1050. A column of the latter alone is read as the other columns of the
    file are written; where these do not say and commas separate the fields, the sign is the point.

    Args:
        columns: Entries of each column; text among them does not matter.
        separator: Between fields.
        places: Where each entry of a column stands, as `line 7`.
    """
    found = [_readings([split_limit(entry)[1] for entry in column]) for column in columns]
    elsewhere = {
        sign
        for column, readings in zip(columns, found, strict=True)
        if _is_numeric(column) and len(readings.keys() & {".", ","}) == 1
        for sign in readings.keys() & {".", ","}
    }
    return [
        _sign(column, readings, elsewhere, separator, places) for column, readings in zip(columns, found, strict=True)
    ]


def _readings(entries: Sequence[str]) -> dict[str, int]:
    """First entry that can only have a decimal point, a decimal comma, or (empty) either with different values."""
    first: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if "." in entry or "," in entry:
            point, comma = parse_number(entry, "."), parse_number(entry, ",")
            if point != comma:
                first.setdefault("." if comma is None else "," if point is None else "", index)
    return first


def _is_numeric(column: Sequence[str]) -> bool:
    there = [entry for entry in column if entry]
    return sum(is_number(split_limit(entry)[1]) for entry in there) > _MOSTLY * len(there)


def _sign(
    column: Sequence[str], readings: dict[str, int], elsewhere: set[str], separator: str | None, places: Sequence[str]
) -> DecimalSign:
    if {".", ","} <= readings.keys():
        both = " and ".join(f"{column[readings[sign]]!r} ({places[readings[sign]]})" for sign in ".,")
        return DecimalSign(".", f"expected one decimal sign, got {both}; write all numbers alike")
    own = readings.keys() & {".", ","}
    if own:
        return DecimalSign(next(iter(own)))
    if "" not in readings:
        return DecimalSign(next(iter(elsewhere)) if len(elsewhere) == 1 else ".")
    entry = column[readings[""]]
    values = {sign: parse_number(split_limit(entry)[1], sign) for sign in ".,"}
    if len(elsewhere) == 1 and (separator != "," or elsewhere == {"."}):
        sign = next(iter(elsewhere))
        like = f"{entry!r} ({places[readings['']]}) and the like"
        note = f"{like} are read as {values[sign]:g}, as other columns are written"
        return DecimalSign(sign, note=note)
    if separator == "," and not elsewhere:
        return DecimalSign(".")
    low, high = sorted(value for value in values.values() if value is not None)
    return DecimalSign(
        ".",
        f"expected numbers with one reading, got {entry!r} ({places[readings['']]}), which is {low:g} or {high:g}; "
        "say which with --decimal . or --decimal ,",
    )


def whole_numbers(entries: Sequence[str]) -> np.ndarray | None:
    """The entries as int64, if all of them are written as whole numbers."""
    if not all(entry.removeprefix("-").isdecimal() and len(entry) < 18 for entry in entries):
        return None
    return np.array([int(entry) for entry in entries], dtype=np.int64)


# Column headers: name and units apart, and names that a file's variables may have.


_BRACKETED = re.compile(r"^(?P<name>.*?)\s*[\[(]\s*(?P<units>[^\[\]()]*?)\s*[\])]$")
_AFTER_SLASH = re.compile(r"^(?P<name>.+?)\s+/\s+(?P<units>\S+)$")


@dataclass(frozen=True)
class Header:
    """A column's name and units; empty where the header does not say."""

    name: str
    units: str


def parse_header(text: str) -> Header:
    """Name and units, written in brackets or after a slash with spaces around it.

    >>> parse_header("Stress (MPa)"), parse_header("Stress / MPa"), parse_header("km/h")
    (Header(name='Stress', units='MPa'), Header(name='Stress', units='MPa'), Header(name='km/h', units=''))
    """
    line = " ".join(text.split())
    match = _BRACKETED.match(line) or _AFTER_SLASH.match(line)
    return Header(match["name"], match["units"]) if match else Header(line, "")


def clean_name(text: str) -> str:
    """Letters, digits and underscores only, so that flags, files and attributes can bear the name.

    >>> clean_name("Yield strength, 0.2 %"), clean_name("[%]")
    ('Yield_strength_0_2', '')
    """
    return re.sub(r"\W+", "_", text).strip("_")


# Text files as instruments and spreadsheets write them: encodings, separators, decimal commas.


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
