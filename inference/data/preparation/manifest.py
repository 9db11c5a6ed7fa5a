"""The manifest: a table with a row per sample, as text."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inference.data.preparation.curve_files import Curve
from inference.data.preparation.headers import clean_name, parse_header
from inference.data.preparation.numbers import DecimalSign, decimal_signs
from inference.data.preparation.text_files import MISSING, read_text
from inference.results.text import shorten

__all__ = ["Column", "Manifest", "read_manifest"]

_SEPARATORS = (";", "\t", ",")
_NAME_WIDTH = 40


@dataclass(frozen=True)
class Column:
    """A column of the manifest.

    Attributes:
        header: As it stands in the file.
        title: The header without units.
        name: The title as the name of a variable.
        units: Units in the header; empty where there are none.
        entries: One per row, stripped; empty where there is none.
        written: The same, with `NA` and the like as they stand: a sample may be called so.
        decimal: How its numbers are written.
    """

    header: str
    title: str
    name: str
    units: str
    entries: tuple[str, ...]
    written: tuple[str, ...]
    decimal: DecimalSign

    def is_called(self, word: str) -> bool:
        """Whether a flag may name the column so: header, title or name, in whichever case."""
        return word.casefold() in {text.casefold() for text in (self.header, self.title, self.name)}


@dataclass(frozen=True)
class Manifest:
    """A manifest.

    Attributes:
        path: The file; paths in it start from its folder.
        columns: The columns that have a header.
        notes: What is left out of it.
        curves: Curves of the rows, by header, of a table that holds the points themselves.
    """

    path: Path
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()
    curves: Mapping[str, tuple[Curve, ...]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows without the header."""
        return len(self.columns[0].entries)

    def find(self, word: str, flag: str) -> Column:
        """The column that a flag names.

        Raises:
            ValueError: There is none of that name, or several.
        """
        exact = [column for column in self.columns if column.header == word]
        found = exact or [column for column in self.columns if column.is_called(word)]
        if len(found) != 1:
            there = ", ".join(shorten(column.header, _NAME_WIDTH) for column in self.columns)
            raise ValueError(f"{flag}: expected a column of {self.path}, got {word!r}; there are {there}")
        return found[0]

    def resolve(self, entry: str) -> Path:
        """The file that an entry names: from the manifest's folder, with either slash."""
        home = self.path.parent
        path = home / Path(entry).expanduser()
        return home / entry.replace("\\", "/") if "\\" in entry and not path.exists() else path


def read_manifest(path: Path, decimal: str | None = None) -> Manifest:
    """Read a table whose first line names the columns; the commonest separator of that line separates.

    Args:
        path: The file.
        decimal: Decimal sign of its numbers; None: found out for each column.

    Raises:
        ValueError: No file, no text, no header, no rows, rows longer than the header, or two columns of one name.
    """
    lines = _read(path).splitlines(keepends=True)
    first = next((line for line in lines if line.strip(" \t,;\r\n")), "")
    separator = max(_SEPARATORS, key=first.count)
    rows = _rows(path, lines, separator)
    if len(rows) < 2:
        raise ValueError(f"{path}: expected a header and a row per sample, got {len(rows)} lines; add the samples")
    headers = rows[0]
    written = list(zip(*rows[1:], strict=True))
    places = [f"row {row + 1}" for row in range(len(rows) - 1)]
    signs = [DecimalSign(decimal)] * len(headers) if decimal else decimal_signs(written, separator, places)
    columns = [_column(*parts) for parts in zip(headers, written, signs, strict=True) if parts[0]]
    notes = [
        f"column {index + 1} has no name, and is left out (row 1: {shorten(entries[0], _NAME_WIDTH) or 'no entry'})"
        for index, (header, entries) in enumerate(zip(headers, written, strict=True))
        if not header and any(entries)
    ]
    _check_columns(path, columns)
    return Manifest(path, tuple(columns), tuple(notes))


def _rows(path: Path, lines: Sequence[str], separator: str) -> list[list[str]]:
    """Fields of every row that is not empty, as many as the longest of them has."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[list[str]] = []
    try:
        for fields in reader:
            row = [field.strip() for field in fields]
            while row and not row[-1] and len(row) > (len(rows[0]) if rows else 0):
                del row[-1]
            if rows and len(row) > len(rows[0]):
                raise ValueError(
                    f"{path}: line {reader.line_num}: expected as many fields in every row as in the header, "
                    f"{len(rows[0])}, got {len(row)}; put entries with {separator!r} in quotes"
                )
            if any("\n" in field and separator in field for field in row):
                raise ValueError(
                    f"{path}: line {reader.line_num}: expected every row on a line of its own, got an entry in quotes "
                    "over several lines; close its quotes"
                )
            if any(row):
                rows.append([*row, *[""] * ((len(rows[0]) if rows else 0) - len(row))])
    except csv.Error as error:
        raise ValueError(f"{path}: line {reader.line_num}: expected a table, got none ({error}); mend it") from error
    return rows


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"{path}: expected a readable table of samples, got none ({reason}); name a CSV file"
        ) from error


def _column(header: str, written: Sequence[str], decimal: DecimalSign) -> Column:
    parsed = parse_header(header)
    title = parsed.name or header
    entries = tuple("" if entry in MISSING else entry for entry in written)
    return Column(header, title, clean_name(title), parsed.units, entries, tuple(written), decimal)


def _check_columns(path: Path, columns: Sequence[Column]) -> None:
    if not columns:
        raise ValueError(f"{path}: expected a header that names the columns, got none; write it in the first line")
    for column in columns:
        if not column.name:
            raise ValueError(
                f"{path}: expected names of columns with letters or digits, got {column.header!r}; rename it"
            )
    name, count = Counter(column.name for column in columns).most_common(1)[0]
    if count > 1:
        headers = " and ".join(repr(column.header) for column in columns if column.name == name)
        raise ValueError(f"{path}: expected columns of different names, got {headers}; rename all but one")
