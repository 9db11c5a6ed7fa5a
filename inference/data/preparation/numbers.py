"""Numbers as people and instruments write them: decimal signs, thousands separators and limits of detection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["DecimalSign", "decimal_signs", "is_number", "parse_number", "split_limit", "whole_numbers"]

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
