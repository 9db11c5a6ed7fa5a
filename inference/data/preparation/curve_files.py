"""One measured curve from a text file: position and value, with the names and units in its header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.data.preparation.headers import Header, parse_header
from inference.data.preparation.problems import UnusableError
from inference.data.preparation.text_files import LAYOUTS, Layout, parse_numbers, read_table, read_text

__all__ = ["Curve", "read_curve"]

_PROBED_LINES = 2000
_COMMENT = "#%;!'\" \t"
_BEFORE_A_FIELD = re.compile(r"\s+(?![\[(])")  # `Strain [%] Stress (MPa)` is two fields
_NO_HEADER = Header("", "")


@dataclass(frozen=True)
class Curve:
    """A curve as measured.

    Attributes:
        x: Position, `[point]`.
        y: Value, `[point]`.
        x_header: Name and units of the position.
        y_header: Name and units of the value.
    """

    x: np.ndarray
    y: np.ndarray
    x_header: Header
    y_header: Header


def read_curve(path: Path, x: str = "1", y: str = "2") -> Curve:
    """Read two columns of a table with any preamble, header and footer around its numbers.

    The numbers reach from the first to the last line of numbers only; separator and decimal sign are those that give
    most such lines. The line above, if it has as many fields, is the header; units may stand below the names, in a
    line of their own. Rows that lack one of the two numbers are left out.

    Args:
        path: The file.
        x: Column of the position, by name (without units, in whichever case) or by number from 1.
        y: Column of the value, likewise.

    Raises:
        UnusableError: No such file, no numbers, text among them, no such column, or fewer than two points.
    """
    lines = [line for line in _read(path).splitlines() if line.strip()]
    layout = max(LAYOUTS, key=lambda choice: sum(_is_row(line, choice) for line in lines[:_PROBED_LINES]))
    rows = [number for number, line in enumerate(lines) if _is_row(line, layout)]
    if len(rows) < 2:
        raise UnusableError("expected two columns of numbers and two rows, got fewer")
    table = _numbers(lines[rows[0] : rows[-1] + 1], layout)
    headers = _headers(lines[: rows[0]], layout, table.shape[1])
    first, second = (_column(word, headers, table.shape[1]) for word in (x, y))
    points = table[:, [first, second]]
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        raise UnusableError(f"expected at least two points, got {len(points)}")
    return Curve(points[:, 0], points[:, 1], headers[first], headers[second])


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise UnusableError("missing file") from None
    except (OSError, ValueError) as error:
        raise UnusableError(f"unreadable: {getattr(error, 'strerror', None) or error}") from error


def _is_row(line: str, layout: Layout) -> bool:
    numbers = parse_numbers(line, layout)
    return numbers is not None and len(numbers) >= 2


def _numbers(lines: Sequence[str], layout: Layout) -> np.ndarray:
    try:
        table = read_table([line.strip(" ") for line in lines], layout, as_text=False)
    except ValueError as error:
        raise UnusableError(f"rows of different length ({error})") from error
    try:
        return table.to_numpy(dtype=float)
    except ValueError:
        text = next(line for line in lines if not _is_row(line, layout))
        raise UnusableError(f"text among the numbers: {text.strip()[:40]!r}") from None


def _headers(preamble: Sequence[str], layout: Layout, n_columns: int) -> list[Header]:
    above = [_fields(line, layout) for line in preamble[-2:]]
    if not above or len(above[-1]) < 2:
        return [_NO_HEADER] * n_columns
    headers = [parse_header(field) for field in above[-1]]
    if not any(header.name for header in headers) and len(above) > 1 and len(above[0]) == len(headers):
        headers = [Header(name, units.units) for name, units in zip(above[0], headers, strict=True)]
    if len(headers) > n_columns:
        return [_NO_HEADER] * n_columns
    return headers + [_NO_HEADER] * (n_columns - len(headers))


def _fields(line: str, layout: Layout) -> list[str]:
    text = line.strip().lstrip(_COMMENT)
    if layout.separator is None:
        return _BEFORE_A_FIELD.split(text)
    return [field.strip().strip('"') for field in text.rstrip(layout.separator).split(layout.separator)]


def _column(word: str, headers: Sequence[Header], n_columns: int) -> int:
    if word.isdecimal() and 1 <= int(word) <= n_columns:
        return int(word) - 1
    names = [header.name.casefold() for header in headers]
    if word.casefold() not in names:
        there = ", ".join(header.name for header in headers if header.name) or "no names"
        raise UnusableError(f"no column {word!r} among {n_columns} ({there})")
    return names.index(word.casefold())
