"""One measured curve from a text file: position and value, with the names and units in its header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causalpima.inference.data.preparation.fields import (
    MISSING,
    Header,
    clean_name,
    decimal_signs,
    is_number,
    parse_header,
    parse_number,
    read_text,
    split_fields,
)
from causalpima.inference.data.preparation.options import UnusableError

__all__ = [
    "Curve",
    "Remark",
    "is_jcamp",
    "read_curve",
    "read_jcamp",
]


# Spectra in JCAMP-DX: one block of `(X++(Y..Y))` or `(XY..XY)`, plain or in the compressed forms of ASDF.


_LABEL = re.compile(r"^##(?P<label>[^=]*)=(?P<value>.*)$")
_MINUS = dict(zip("abcdefghijklmnopqr", [*range(-1, -10, -1)] * 2, strict=True))
_FIRST_DIGITS = {**dict(zip("@ABCDEFGHI%JKLMNOPQR", [*range(10)] * 2, strict=True)), **_MINUS}
_REPEATED = dict(zip("STUVWXYZs", range(1, 10), strict=True))
_TOKEN = re.compile(
    r"\s*(?:(?P<plain>[+-]?(?:\d+\.?\d*|\.\d+)(?:[Ee][+-]\d+)?)|(?P<gap>\?)"
    r"|(?:(?P<squeezed>[@A-Ia-i])|(?P<difference>[%J-Rj-r])|(?P<repeated>[S-Zs]))(?P<digits>\d*))"
)
_MOST_REPEATS = 10**6


def is_jcamp(text: str) -> bool:
    """Whether a text begins as a JCAMP-DX file does."""
    return re.match(r"\s*##\s*(TITLE|JCAMP-?DX)\s*=", text, re.IGNORECASE) is not None


def read_jcamp(text: str) -> tuple[np.ndarray, np.ndarray, str, str]:
    r"""Position, value and the units of both of the spectrum in a file.

    $x_i = \mathtt{FIRSTX} + i\,(\mathtt{LASTX} - \mathtt{FIRSTX}) / (n - 1)$ for `(X++(Y..Y))`, and $y_i$ is the stored
    number times `YFACTOR`; the position that begins each line is compared with its $x_i$.

    Raises:
        UnusableError: Several blocks, another form of the data, or numbers that contradict the header.
    """
    labels, data, form = _records(text)
    read = {"(X++(Y..Y))": _evenly_spaced, "(XY..XY)": _pairs}.get(form.replace(" ", "").upper())
    if read is None:
        raise UnusableError(
            f"JCAMP-DX: expected one block of data (X++(Y..Y)) or (XY..XY), got {form.strip() or 'none'}"
        )
    x, y = read(labels, data)
    return x, y * _number(labels, "YFACTOR", 1.0), labels.get("XUNITS", ""), labels.get("YUNITS", "")


def _pairs(labels: dict[str, str], data: list[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray]:
    numbers = [float(word) for number, line in data for word in _plain(number, line)]
    if len(numbers) % 2 or len(numbers) < 4:
        raise UnusableError(f"JCAMP-DX: expected pairs of numbers, got {len(numbers)} numbers")
    return np.array(numbers[::2]) * _number(labels, "XFACTOR", 1.0), np.array(numbers[1::2])


def _evenly_spaced(labels: dict[str, str], data: list[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray]:
    starts, y = _ordinates(data)
    n_points = _number(labels, "NPOINTS", float(len(y)))
    if n_points != len(y) or len(y) < 2:
        raise UnusableError(f"JCAMP-DX: expected {n_points:g} points as NPOINTS says, and two at least, got {len(y)}")
    x = np.linspace(_number(labels, "FIRSTX"), _number(labels, "LASTX"), len(y))
    factor = _number(labels, "XFACTOR", 1.0)
    for number, place, position in starts:
        if abs(position * factor - x[place]) > abs(x[1] - x[0]) + abs(factor):
            raise UnusableError(
                f"JCAMP-DX: line {number}: expected the position {x[place]:g} there, got {position * factor:g}"
            )
    return x, y


def _records(text: str) -> tuple[dict[str, str], list[tuple[int, str]], str]:
    """Labels and their values, the numbered lines of data, and the form of the data."""
    labels: dict[str, str] = {}
    data: list[tuple[int, str]] = []
    form = ""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.split("$$")[0].strip()
        match = _LABEL.match(stripped)
        if match is None:
            if inside and stripped:
                data.append((number, stripped))
            continue
        label = re.sub(r"[\s_/-]", "", match["label"]).upper()
        inside = label in ("XYDATA", "XYPOINTS", "PEAKTABLE")
        if (inside and form) or label == "NTUPLES":
            raise UnusableError(f"line {number}: expected one block of data in a JCAMP-DX file, got several")
        if inside:
            form = match["value"]
        else:
            labels.setdefault(label, match["value"].strip())
    return labels, data, form


def _number(labels: dict[str, str], label: str, default: float | None = None) -> float:
    if label not in labels and default is not None:
        return default
    try:
        return float(labels.get(label, ""))
    except ValueError:
        raise UnusableError(f"JCAMP-DX: {label}: expected a number, got {labels.get(label)!r}") from None


def _plain(number: int, line: str) -> list[str]:
    words = re.split(r"[\s,;]+", line.strip(" ,;"))
    for word in words:
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([Ee][+-]?\d+)?", word):
            raise UnusableError(f"JCAMP-DX: line {number}: {word[:40]!r} is no number")
    return words


def _ordinates(data: list[tuple[int, str]]) -> tuple[list[tuple[int, int, float]], np.ndarray]:
    """For each line its number in the file, the index of its first value, and its position; and all values.

    A line after one that ends in a difference begins with the last value again, as a check.
    """
    starts: list[tuple[int, int, float]] = []
    values: list[float] = []
    ended_in_difference = False
    for number, line in data:
        position, found, differs = _decoded(number, line)
        if ended_in_difference:
            if values[-1] != found[0]:
                raise UnusableError(
                    f"JCAMP-DX: line {number}: expected the last value of the line above again, {values[-1]:g}, "
                    f"got {found[0]:g}"
                )
            starts.append((number, len(values) - 1, position))
            found = found[1:]
        else:
            starts.append((number, len(values), position))
        values += found
        ended_in_difference = differs
    return starts, np.array(values)


def _decoded(number: int, line: str) -> tuple[float, list[float], bool]:
    """Position, values, and whether the last of these was given as a difference."""
    tokens = list(_tokens(number, re.sub(r"[,;]", " ", line).rstrip()))
    if len(tokens) < 2 or not tokens[0]["plain"]:
        raise UnusableError(f"JCAMP-DX: line {number}: expected a position and values, got {line[:40]!r}")
    values: list[float] = []
    step: float | None = None
    for token in tokens[1:]:
        if not values and (token["difference"] or token["repeated"]):
            raise UnusableError(f"JCAMP-DX: line {number}: expected a value before {token[0].strip()!r}, got none")
        if token["repeated"]:
            times = int(f"{_REPEATED[token['repeated']]}{token['digits']}") - 1
            values += [values[-1] + (step or 0.0) * i for i in range(1, min(times, _MOST_REPEATS) + 1)]
        elif token["difference"]:
            step = float(f"{_FIRST_DIGITS[token['difference']]}{token['digits']}")
            values.append(values[-1] + step)
        else:
            step = None
            squeezed = token["squeezed"] and f"{_FIRST_DIGITS[token['squeezed']]}{token['digits']}"
            values.append(float(squeezed or token["plain"] or "nan"))
    return float(tokens[0]["plain"]), values, step is not None


def _tokens(number: int, line: str) -> Iterator[re.Match[str]]:
    place = 0
    while place < len(line):
        match = _TOKEN.match(line, place)
        if match is None:
            raise UnusableError(f"JCAMP-DX: line {number}: {line[place : place + 40].strip()!r} is no number")
        yield match
        place = match.end()


_SEPARATORS = (";", "\t", ",", None)
_PROBED_LINES = 2000
_SHOWN = 40
_BEFORE_A_FIELD = re.compile(r"\s+(?![\[(])")  # `Strain [%] Stress (MPa)` is two fields
_COMMENT = re.compile(r"^\s*(?:[#!'\"]+|%(?=[\s\w]))\s*")
_NOT_FINITE = frozenset({"inf", "-inf", "+inf", "infinity", "-infinity", "-nan", "null", "none"})
_CLOCK = re.compile(r"\d+:\d\d(:\d\d)?([.,]\d+)?")
_COUNTS = frozenset({"", "no", "nr", "index", "idx", "row", "point", "n", "i", "unnamed_0", "num", "number"})
_NO_HEADER = Header("", "")

Remark = tuple[str, str]
"""What was left out of a file: the kind of thing, for all files alike, and which."""


@dataclass(frozen=True)
class Curve:
    """A curve as measured.

    Attributes:
        x: Position, `[point]`.
        y: Value, `[point]`.
        x_header: Name and units of the position.
        y_header: Name and units of the value.
        remarks: What the file holds besides.
    """

    x: np.ndarray
    y: np.ndarray
    x_header: Header
    y_header: Header
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class _Table:
    """Rows of fields, the lines of the file they stand on (from 1), and a header per column."""

    rows: list[list[str]]
    lines: list[int]
    headers: list[Header]
    separator: str | None

    def column(self, index: int) -> list[str]:
        return [row[index] for row in self.rows]

    def named(self, index: int) -> str:
        name = self.headers[index].name
        return f"column {index + 1} ({name})" if name else f"column {index + 1}"


def read_curve(path: Path, x: str | None = None, y: str | None = None, decimal: str | None = None) -> Curve:
    """Read two columns of a table with any preamble, header and footer around its numbers, or a JCAMP-DX file.

    The numbers reach from the first to the last line of numbers only; the separator is the one that gives most such
    lines, and every column has a decimal sign of its own. The line above, if it has as many fields, is the header;
    units may stand below the names, in a line of their own. Rows that lack one of the two numbers, columns that are not
    used and lines below the numbers are remarked; anything else that is no number is an error.

    Args:
        path: The file.
        x: Column of the position, by name (without units, in whichever case) or by number from 1; None: the first
            column of numbers that does not merely count the rows.
        y: Column of the value, likewise; None: the next column of numbers.
        decimal: Decimal sign, `.` or `,`; None: found out.

    Raises:
        UnusableError: No such file, no numbers, text among them, no such column, or fewer than two points.
    """
    text = _read(path)
    if is_jcamp(text):
        positions, values, x_units, y_units = read_jcamp(text)
        return _curve(positions, values, (Header("", x_units), Header("", y_units)), [])
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip(" \t;,")]
    table, below = _table(numbered)
    first, second = _columns(table, x, y)
    positions, values = (_numbers(table, index, decimal) for index in (first, second))
    unused = [table.headers[i].name or f"number {i + 1}" for i in range(len(table.headers)) if i not in (first, second)]
    remarks = [
        *([("columns not used", ", ".join(unused))] if unused else []),
        *([("lines below the numbers left out", f"line {below[0][0]}: {_shown(below[0][1])}")] if below else []),
    ]
    return _curve(positions, values, (table.headers[first], table.headers[second]), remarks)


def _curve(x: np.ndarray, y: np.ndarray, headers: tuple[Header, Header], remarks: Sequence[Remark]) -> Curve:
    """The curve without points that lack a number."""
    finite = np.isfinite(x) & np.isfinite(y)
    if finite.sum() < 2:
        raise UnusableError(f"expected at least two points, got {finite.sum()}")
    gaps = [] if finite.all() else [("points without a finite number left out", str((~finite).sum()))]
    return Curve(x[finite], y[finite], *headers, (*remarks, *gaps))


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise UnusableError("missing file") from None
    except (OSError, ValueError) as error:
        raise UnusableError(f"unreadable: {getattr(error, 'strerror', None) or error}") from error


def _table(numbered: Sequence[tuple[int, str]]) -> tuple[_Table, list[tuple[int, str]]]:
    """The table, and the lines below it."""
    probed = [line for _, line in numbered[:_PROBED_LINES]]
    # A table in which no line is of numbers alone has a column of text: two numbers make a row.
    for strict in (True, False):
        separator = max(_SEPARATORS, key=lambda choice: sum(_is_row(line, choice, strict) for line in probed))
        places = [place for place, (_, line) in enumerate(numbered) if _is_row(line, separator, strict)]
        if len(places) >= 2:
            break
    else:
        raise UnusableError(f"expected two columns of numbers and two rows, got fewer{_stumble(numbered)}")
    begin, end = places[0], places[-1] + 1
    rows = [split_fields(line, separator) for _, line in numbered[begin:end]]
    n_columns = Counter(len(_trimmed(fields)) for fields in rows).most_common(1)[0][0]
    body = []
    for (number, line), fields in zip(numbered[begin:end], rows, strict=True):
        found = _trimmed(fields)
        if len(found) == 1 and not is_number(found[0]) and n_columns > 1 and found[0] not in MISSING:
            raise UnusableError(f"line {number}: text among the numbers: {_shown(line)}")
        if len(found) > n_columns or (separator is None and len(found) < n_columns):
            raise UnusableError(
                f"rows of different length: line {number} has {len(found)} fields, most have {n_columns}"
            )
        body.append([*found, *[""] * (n_columns - len(found))])
    headers = _headers([line for _, line in numbered[:begin]], separator, body, numbered[begin - 1][0] if begin else 0)
    table = _Table(body, [number for number, _ in numbered[begin:end]], headers, separator)
    _check_around(numbered[:begin], table, above=True)
    _check_around(numbered[end:], table, above=False)
    return table, list(numbered[end:])


def _trimmed(fields: Sequence[str]) -> list[str]:
    """The fields without empty ones at the end."""
    last = max((index for index, field in enumerate(fields) if field), default=-1)
    return list(fields[: last + 1])


def _is_row(line: str, separator: str | None, strict: bool) -> bool:
    fields = [field for field in split_fields(line, separator) if field]
    if len(fields) < 2 or (separator == "," and '"' not in line and any(" " in field for field in fields)):
        return False
    n_numbers = sum(map(is_number, fields))
    return n_numbers + sum(map(_is_gap, fields)) == len(fields) and n_numbers > 0 if strict else n_numbers >= 2


def _is_gap(field: str) -> bool:
    return field in MISSING or field.casefold() in _NOT_FINITE


def _stumble(numbered: Sequence[tuple[int, str]]) -> str:
    """The first field beside a number that is none, of a file without rows of numbers."""
    for separator in _SEPARATORS:
        for number, line in numbered:
            fields = split_fields(line, separator)
            if len(fields) < 2 or sum(map(is_number, fields)) != len(fields) - 1:
                continue
            index = next(index for index, field in enumerate(fields) if not is_number(field))
            if any(character.isdigit() for character in fields[index]):
                return f" (line {number}, column {index + 1}: {_why(fields[index])})"
    return ""


def _why(field: str) -> str:
    if _CLOCK.fullmatch(field):
        return f"{_shown(field)} is a time of the clock; write it in seconds"
    return f"{_shown(field)} is no number"


def _shown(text: str) -> str:
    return repr(text.strip()[:_SHOWN])


def _check_around(numbered: Sequence[tuple[int, str]], table: _Table, *, above: bool) -> None:
    """Refuse rows above and below the numbers that a field such as `>3.0` keeps from being numbers."""
    for number, line in numbered:
        fields = _trimmed(split_fields(line, table.separator))
        if len(fields) != len(table.headers) or not is_number(fields[0]):
            continue
        index = next((i for i, field in enumerate(fields) if not is_number(field) and not _is_gap(field)), None)
        if index is not None and (not above or any(character.isdigit() for character in fields[index])):
            raise UnusableError(f"line {number}, {table.named(index)}: {_why(fields[index])}")


def _headers(preamble: Sequence[str], separator: str | None, body: Sequence[Sequence[str]], line: int) -> list[Header]:
    """A header for each column from the last lines above the numbers; empty ones where these are no header."""
    n_columns = len(body[0])
    above = [_header_fields(line, separator) for line in preamble[-2:]]
    if not above or len(_trimmed(above[-1])) < 2:
        return [_NO_HEADER] * n_columns
    words = above[-1]
    headers = [parse_header(field) for field in words]
    if len(above) > 1 and len(above[0]) == len(headers) and not all(clean_name(header.name) for header in headers[-2:]):
        units = [header.units or word.strip("-") for header, word in zip(headers, words, strict=True)]
        headers = [Header(name, unit) for name, unit in zip(above[0], units, strict=True)]
    if separator is None and len(headers) != n_columns:
        counts = len(headers) == n_columns - 1 and _counts([row[0] for row in body])
        return [_NO_HEADER, *headers] if counts else [_NO_HEADER] * n_columns
    if len(headers) < n_columns:
        raise UnusableError(
            f"line {line}: expected names of {n_columns} columns as in the rows below, got {len(headers)}: "
            f"{_shown(preamble[-1])}"
        )
    return headers[:n_columns]


def _header_fields(line: str, separator: str | None) -> list[str]:
    text = _COMMENT.sub("", line) if separator is None or not line.startswith((separator, '"')) else line
    if separator is None:
        return _BEFORE_A_FIELD.split(text.strip())
    fields = split_fields(text, separator)
    return fields if fields and fields[0] == "" and any(fields) and fields[-1] else _trimmed(fields)


def _counts(column: Sequence[str]) -> bool:
    """Whether a column counts the rows, from 0 or 1."""
    return column[0] in ("0", "1") and all(entry == str(int(column[0]) + i) for i, entry in enumerate(column))


def _columns(table: _Table, x: str | None, y: str | None) -> tuple[int, int]:
    """Columns of position and value."""
    if x is not None and y is not None:
        return _column("curve_x", x, table), _column("curve_y", y, table)
    flags = {"curve_x": x, "curve_y": y}
    named = {_column(flag, word, table) for flag, word in flags.items() if word is not None}
    free = [index for index in range(len(table.headers)) if index not in named]
    count = clean_name(table.headers[0].name).casefold() in _COUNTS and any(h.name for h in table.headers)
    if count and len(table.headers) > 2 and 0 in free and _counts(table.column(0)):
        free.remove(0)
    numeric = []
    for index in free:
        entries = [entry for entry in table.column(index) if entry and not _is_gap(entry)]
        numbers = sum(map(is_number, entries))
        if numbers > len(entries) / 2:
            numeric.append(index)
        elif len(numeric) + len(named) < 2 and any(character.isdigit() for entry in entries for character in entry):
            place = next(i for i, entry in enumerate(table.column(index)) if any(c.isdigit() for c in entry))
            raise UnusableError(
                f"line {table.lines[place]}, {table.named(index)}: {_why(table.rows[place][index])}; "
                "or name the columns with --curve_x and --curve_y"
            )
    first = numeric.pop(0) if x is None and numeric else None if x is None else _column("curve_x", x, table)
    second = numeric.pop(0) if y is None and numeric else None if y is None else _column("curve_y", y, table)
    if first is None or second is None:
        raise UnusableError("expected two columns of numbers and two rows, got fewer")
    return first, second


def _column(flag: str, word: str, table: _Table) -> int:
    n_columns = len(table.headers)
    if word.isdecimal() and 1 <= int(word) <= n_columns:
        return int(word) - 1
    names = [header.name.casefold() for header in table.headers]
    if word.casefold() not in names:
        there = ", ".join(header.name for header in table.headers if header.name) or "no names"
        raise UnusableError(f"no column {word!r}, as --{flag} says, among {n_columns} ({there})")
    return names.index(word.casefold())


def _numbers(table: _Table, index: int, decimal: str | None) -> np.ndarray:
    """The numbers of a column, NaN where there is none."""
    column = table.column(index)
    for line, entry in zip(table.lines, column, strict=True):
        if not is_number(entry) and not _is_gap(entry):
            raise UnusableError(f"line {line}, {table.named(index)}: {_why(entry)}")
    if decimal is None:
        columns = [table.column(i) for i in range(len(table.headers))]
        sign = decimal_signs(columns, table.separator, [f"line {line}" for line in table.lines])[index]
        if sign.doubt:
            raise UnusableError(f"{table.named(index)}: {sign.doubt}")
        decimal = sign.sign
    values = [None if _is_gap(entry) else parse_number(entry, decimal) for entry in column]
    wrong = next((i for i, value in enumerate(values) if value is None and not _is_gap(column[i])), None)
    if wrong is not None:
        raise UnusableError(
            f"line {table.lines[wrong]}, {table.named(index)}: {_shown(column[wrong])} is no number with {decimal!r} "
            "as decimal sign"
        )
    return np.array([np.nan if value is None else value for value in values])
