"""The manifest: a table with a row per sample, as text."""

from __future__ import annotations

import csv
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from causalpima.inference.data.preparation.curve_files import Curve
from causalpima.inference.data.preparation.fields import (
    MISSING,
    DecimalSign,
    Header,
    clean_name,
    decimal_signs,
    parse_header,
    parse_number,
    read_text,
)
from causalpima.inference.store.text import shorten

__all__ = [
    "Column",
    "Manifest",
    "gather_points",
    "read_manifest",
]


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


# A table with a row per point instead of a row per sample.


_FEWEST_POINTS = 5


def gather_points(manifest: Manifest, samples: Column, x: str | None, y: str | None) -> Manifest:
    """The manifest with a row per sample, and the points of each sample as curves.

    A table is long where samples have five rows or more on average and a column of numbers rises or falls within each:
    the position. Other numbers that differ within a sample are curves over it; what is the same in all of its rows is
    kept, and other columns are left out with a note. Any other manifest is returned as it is.

    Args:
        manifest: The table.
        samples: Column that names the samples.
        x: Name of the column of positions; None: the first that rises or falls.
        y: Name of the column of values; None: all.

    Raises:
        ValueError: A position or value whose decimal sign cannot be told.
    """
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(samples.written):
        groups.setdefault(name, []).append(row)
    groups.pop("", None)
    rows = list(groups.values())
    if not rows or len(samples.written) < _FEWEST_POINTS * len(rows):
        return manifest
    numbers = {c.header: found for c in manifest.columns if c is not samples and (found := _numbers(c)) is not None}
    orders = [c for c in manifest.columns if c.header in numbers and _is_position(numbers[c.header], rows)]
    orders = [c for c in orders if x is None or c.is_called(x)]
    differing = [
        c for c in manifest.columns if any(len({c.entries[row] for row in group} - {""}) > 1 for group in rows)
    ]
    values = [c for c in differing if c.header in numbers and c not in orders[:1] and (y is None or c.is_called(y))]
    if not orders or not values:
        return manifest
    position = orders[0]
    for column in (position, *values):
        if column.decimal.doubt:
            raise ValueError(f"{column.header}: {column.decimal.doubt}")
    curves = {
        column.header: tuple(
            _curve(position, column, numbers[position.header], numbers[column.header], g) for g in rows
        )
        for column in values
    }
    columns = [
        _one_per_sample(column, rows, is_curve=column in values)
        for column in manifest.columns
        if column is not position and (column in values or column not in differing)
    ]
    lost = [c.header for c in differing if c is not position and c not in values and c is not samples]
    unnamed = len(samples.written) - sum(map(len, rows))
    notes = [
        f"{len(samples.written)} rows of {len(rows)} samples: {', '.join(curves)} over {position.header}",
        *([f"left out, since they differ within a sample: {', '.join(lost)}"] if lost else []),
        *([f"left out, since they name no sample: {unnamed} rows"] if unnamed else []),
    ]
    return dataclasses.replace(manifest, columns=tuple(columns), curves=curves, notes=(*manifest.notes, *notes))


def _numbers(column: Column) -> np.ndarray | None:
    """The numbers, NaN for no entry; None if there is anything else."""
    values = [parse_number(entry, column.decimal.sign) if entry else np.nan for entry in column.entries]
    return None if any(value is None for value in values) else np.array(values, dtype=float)


def _is_position(values: np.ndarray, rows: Sequence[Sequence[int]]) -> bool:
    steps = [np.diff(values[list(group)]) for group in rows if len(group) > 1]
    return bool(steps) and all((step > 0).all() or (step < 0).all() for step in steps)


def _curve(position: Column, value: Column, x: np.ndarray, y: np.ndarray, rows: Sequence[int]) -> Curve:
    there = np.isfinite(y[list(rows)])
    remarks = () if there.all() else (("points without a finite number left out", str((~there).sum())),)
    headers = Header(position.title, position.units), Header(value.title, value.units)
    return Curve(x[list(rows)][there], y[list(rows)][there], *headers, remarks)


def _one_per_sample(column: Column, rows: Sequence[Sequence[int]], *, is_curve: bool) -> Column:
    def first(entries: Sequence[str], group: Sequence[int]) -> str:
        there = [entries[row] for row in group if entries[row]]
        if is_curve:
            return f"{len(there)} points" if there else ""
        return there[0] if there else ""

    entries = tuple(first(column.entries, group) for group in rows)
    written = tuple(first(column.written, group) for group in rows)
    return dataclasses.replace(column, entries=entries, written=written)
