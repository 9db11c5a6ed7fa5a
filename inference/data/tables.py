"""A table of categories: every column is a node, every row a sample in which all nodes are seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causalpima.inference.data.preparation.fields import MISSING, Layout, read_table, read_text
from causalpima.inference.data.roles import check_levels, gap_like_levels, is_number
from causalpima.inference.store.text import shorten

__all__ = [
    "MOST_COLUMNS",
    "MOST_LEVELS",
    "CategoryTable",
    "read_category_table",
]


MOST_COLUMNS = 20
"""Columns of which all sets fit into memory."""

MOST_LEVELS = 200
"""More different entries are numbers or names of samples, not categories."""

_SEPARATORS = (";", "\t", ",")
_NO_ENTRY = MISSING | {"?", ".", "#N/A", "NULL", "null", "n.a.", "N.A.", "n.d.", "N.D."}
_WIDTH = 40


@dataclass(frozen=True)
class CategoryTable:
    """Categories, numbered.

    Attributes:
        nodes: Names of the columns.
        levels: Different entries of each column; numbers in their order, before words in theirs.
        codes: Place of each entry in its column's levels, `[n, L]`.
        notes: Levels that look as if they stood for a missing entry; one line each.
    """

    nodes: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    codes: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Number of levels of each column."""
        return tuple(map(len, self.levels))


def read_category_table(path: Path | str, names: Sequence[str] = ()) -> CategoryTable:
    """Read a table whose first line names the columns.

    The commonest separator of that line (semicolon, tab, comma) separates, white space where it has none. An entry is
    missing where it is empty, `NA`, `N/A`, `NaN`, `NULL`, `n.a.`, `n.d.`, `.` or `?`.

    Args:
        path: The file.
        names: Columns to read, in this order; none: all.

    Raises:
        ValueError: No table, no names, missing entries, or columns that are no categories; one line that names the file
            and the column or the row.
    """
    path = Path(path)
    header, rows, lines = _fields(path)
    if names:
        chosen = [_place(path, header, name) for name in names]
        header, rows = [header[place] for place in chosen], [[row[place] for place in chosen] for row in rows]
    _check_header(path, header)
    _check_rows(path, header, rows, lines)
    columns = list(zip(*rows, strict=True))
    levels = tuple(_levels(path, name, column) for name, column in zip(header, columns, strict=True))
    places = [{level: place for place, level in enumerate(column)} for column in levels]
    codes = [[place[entry] for entry in column] for place, column in zip(places, columns, strict=True)]
    notes = [
        _gap_note(name, level, column)
        for name, of, column in zip(header, levels, columns, strict=True)
        for level in gap_like_levels(of)
    ]
    return CategoryTable(tuple(header), levels, np.array(codes, dtype=np.int64).T, tuple(notes))


def _place(path: Path, header: Sequence[str], name: str) -> int:
    if header.count(name) != 1:
        there = "none" if name not in header else "several of that name"
        raise ValueError(
            f"{path}: columns: expected columns of the table ({', '.join(map(_short, header))}), got {there} for "
            f"{_short(name)}; correct the name"
        )
    return header.index(name)


def _gap_note(name: str, level: str, column: Sequence[str]) -> str:
    return (
        f"{_short(name)}: {level!r} in {column.count(level)} of {len(column)} rows looks like a missing entry, and "
        "counts as a level; leave these rows out if it is none"
    )


def _fields(path: Path) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the rows, and the line in the file that each row stands on."""
    numbered = [(number, line) for number, line in enumerate(_text(path).splitlines(), 1) if line.strip()]
    if len(numbered) < 3:
        raise ValueError(
            f"{path}: expected a line of names and at least 2 rows, got {len(numbered)} lines; add samples"
        )
    first = numbered[0][1]
    separator = max(_SEPARATORS, key=first.count)
    layout = Layout(separator if separator in first else None, ".")
    try:
        table = read_table([line for _, line in numbered], layout, as_text=True).fillna("")
    except ValueError as error:  # pandas' own errors are among them
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: expected as many fields in every row as in the first line ({reason})") from error
    if len(table) != len(numbered):
        raise ValueError(f"{path}: expected every row on a line of its own, got an entry in quotes over several lines")
    header, *rows = [[entry.strip() for entry in row] for row in table.itertuples(index=False)]
    return header, rows, [number for number, _ in numbered[1:]]


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path}: expected a readable table, got none ({reason}); name a CSV file") from error


def _check_header(path: Path, header: Sequence[str]) -> None:
    if len(header) > MOST_COLUMNS:
        raise ValueError(
            f"{path}: expected at most {MOST_COLUMNS} columns, got {len(header)}; name those to use with --columns"
        )
    if len(header) < 2:
        raise ValueError(
            f"{path}: expected at least 2 columns with semicolons, tabs or commas between them, got "
            f"{_short(header[0])} alone; add columns"
        )
    if not all(header):
        raise ValueError(
            f"{path}: expected a name for column {header.index('') + 1}, got none; name it in line 1, or name the "
            "columns to use with --columns"
        )
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise ValueError(f"{path}: expected different names of columns, got {_short(twice[0])} twice; rename one")
    if all(map(is_number, header)):
        raise ValueError(f"{path}: expected names of columns in line 1, got numbers alone; add a line of names")


def _check_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
    for line, row in zip(lines, rows, strict=True):
        for name, entry in zip(header, row, strict=True):
            if entry in _NO_ENTRY:
                raise ValueError(
                    f"{path}: line {line}: {_short(name)}: expected an entry, got {repr(entry) if entry else 'none'}; "
                    "leave the row or the column out"
                )


def _levels(path: Path, name: str, column: Sequence[str]) -> tuple[str, ...]:
    levels = sorted(set(column), key=_by_number)
    if len(levels) < 2:
        raise ValueError(
            f"{path}: {_short(name)}: expected at least 2 different entries, got {_short(levels[0])} alone; "
            "leave the column out (--columns names those to use)"
        )
    remedy = "leave the column out (--columns names those to use)"
    check_levels(f"{path}: {_short(name)}", levels, len(column), remedy)
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"{path}: {_short(name)}: expected at most {MOST_LEVELS} different entries, got {len(levels)}; {remedy}"
        )
    return tuple(levels)


def _by_number(entry: str) -> tuple[float, str]:
    return (float(entry), entry) if is_number(entry) else (np.inf, entry)


def _short(text: str) -> str:
    return shorten(text, _WIDTH)
