"""A kind of measurement as it goes into the file: its description, and how a sample's is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

from causalpima.inference.data.preparation.fields import DecimalSign, parse_number, split_limit
from causalpima.inference.data.preparation.manifest import Column
from causalpima.inference.data.preparation.options import UnusableError
from causalpima.inference.store.text import shorten

__all__ = [
    "FEWEST_COLUMNS",
    "Coordinate",
    "Modality",
    "attempt_all",
    "check_usable",
    "entry_of",
    "limit_notes",
    "number_of",
    "scalar_modality",
    "vector_modality",
    "vector_of",
    "with_progress",
]


@dataclass(frozen=True)
class Coordinate:
    """Positions along a dimension, with name and units."""

    values: np.ndarray
    title: str
    units: str


@dataclass(frozen=True)
class Modality:
    """A variable of the file.

    Attributes:
        column: Where it comes from.
        kind: What a sample's measurement is.
        dims: Names of the dimensions after that of the samples.
        shape: Their sizes.
        dtype: Of the stored numbers.
        read: The measurement in a row of the manifest, from 0; raises `UnusableError`.
        units: Units of the values.
        rule: How the values come from the files, in words.
        coordinates: Positions, by dimension.
        notes: What a user should know of these files.
    """

    column: Column
    kind: Literal["image", "curve", "vector"]
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: Literal["float32", "float64"]
    read: Callable[[int], np.ndarray]
    units: str
    rule: str = ""
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the variable."""
        return self.column.name


def attempt_all(read: Callable[[int], Any], rows: Iterable[int]) -> tuple[dict[int, Any], dict[int, UnusableError]]:
    """What can be read, by row, and what can't."""
    found: dict[int, Any] = {}
    problems: dict[int, UnusableError] = {}
    for row in rows:
        try:
            found[row] = read(row)
        except UnusableError as error:
            problems[row] = error
    return found, problems


def entry_of(column: Column, row: int) -> str:
    """The entry in a row.

    Raises:
        UnusableError: There is none.
    """
    if not column.entries[row]:
        raise UnusableError("no entry")
    return column.entries[row]


def check_usable(column: Column, problems: Mapping[int, UnusableError], n_rows: int) -> None:
    """Refuse a column of which no entry can be used, or less than half of those that are there.

    Args:
        column: The column.
        problems: By row, why its entry cannot be used.
        n_rows: Number of rows in use.

    Raises:
        ValueError: It is so; the message tells the first reason.
    """
    entered = [row for row in problems if column.entries[row]]
    n_entered = n_rows - len(problems) + len(entered)
    if len(problems) < n_rows and 2 * len(entered) <= n_entered:
        return
    row = (entered or list(problems))[0]
    entry = f" {column.entries[row]}" if column.entries[row] else ""
    least, found = "at least one row", f"none of {n_rows}"
    if len(problems) < n_rows:
        least, found = "at least half of the rows that have one", f"{n_entered - len(entered)} of {n_entered}"
    raise ValueError(
        f"{column.header}: expected a usable entry in {least}, got {found} "
        f"(row {row + 1}{entry}: {problems[row]}); correct them, or leave the column out with --ignore"
    )


def with_progress(rows: Sequence[int], what: str) -> Iterable[int]:
    """The rows, with a bar on a terminal."""
    bar: Iterable[int] = tqdm(rows, desc=what, unit="sample", disable=None, leave=False)
    return bar


# A column of numbers as a modality.


def scalar_modality(column: Column, rows: Sequence[int]) -> Modality:
    """One number per sample, in the units of the header.

    An entry below a limit of detection, `<0.05`, is half the limit; one above a limit, `>3`, is the limit.

    Args:
        column: The column.
        rows: Rows in use.

    Raises:
        ValueError: Hardly a number in them, or decimal signs that contradict each other.
    """

    def read(row: int) -> np.ndarray:
        entry = entry_of(column, row)
        value = number_of(entry, column.decimal.sign)
        if value is None:
            raise UnusableError("no finite number")
        return np.array(value)

    if column.decimal.doubt:
        raise ValueError(f"{column.header}: {column.decimal.doubt}")
    _, problems = attempt_all(read, rows)
    check_usable(column, problems, len(rows))
    return Modality(
        column,
        "vector",
        (),
        (),
        "float64",
        read,
        column.units,
        notes=(
            *([column.decimal.note] if column.decimal.note else []),
            *limit_notes(column.entries[row] for row in rows),
        ),
    )


def number_of(entry: str, decimal: str) -> float | None:
    """The number in an entry: half of a limit of detection that it is below, a limit that it is above."""
    sign, text = split_limit(entry)
    value = parse_number(text, decimal)
    return value / 2 if value is not None and value > 0 and sign[:1] in ("<", "\u2264") else value


def limit_notes(entries: Iterable[str]) -> tuple[str, ...]:
    """How many entries are limits, and what became of them."""
    signs = Counter(split_limit(entry)[0][:1] for entry in entries)
    n_below, n_above = signs["<"] + signs["\u2264"], signs[">"] + signs["\u2265"]
    below = [f"{n_below} below a limit (<) are stored as half of the limit"] if n_below else []
    return (*below, *([f"{n_above} above a limit (>) are stored as the limit"] if n_above else []))


# Columns of numbers that belong together, as one modality.


FEWEST_COLUMNS = 10
"""Columns of numbers with a common name that are put together without being asked for."""

_NUMBERED = re.compile(
    r"(?P<name>|.*?[^\W\d].*?)[\s_.\-]*?(?P<number>-?\d+(?:[.,]\d+)?)\s*(?P<units>(?<=\d)\s*[^\W\d_]\S*)?"
)
_WIDTH = 40


def vector_of(column: Column) -> tuple[str, float, str] | None:
    """Name of the vector that a column is called an element of, its position there, and the units of the position.

    `ir_1000` is the element at 1000 of `ir`; a header that is a number (and units) belongs to `spectrum`.
    """
    match = _NUMBERED.fullmatch(column.title)
    if match is None or (match["name"] and match["units"]):
        return None
    units = (match["units"] or "").strip() or ("" if match["name"] else column.units)
    return match["name"].strip(" _.-") or "spectrum", float(match["number"].replace(",", ".")), units


def vector_modality(name: str, columns: Sequence[Column], rows: Sequence[int]) -> Modality:
    """A number for each of the columns; NaN where there is no entry.

    Its elements lie along the numbers in the headers. They are a curve where these are more than a mere count.

    Args:
        name: Name of the variable.
        columns: Its elements.
        rows: Rows in use.

    Raises:
        ValueError: Hardly a sample has one, or a column with decimal signs that contradict each other.
    """
    for column in columns:
        if column.decimal.doubt:
            raise ValueError(f"{column.header}: {column.decimal.doubt}")
    positions = [found for column in columns if (found := vector_of(column)) is not None]
    numbers = np.array([number for _, number, _ in positions])
    counts = np.array_equal(numbers, np.arange(len(numbers)) + numbers[0]) and numbers[0] in (0, 1)
    units = columns[0].units if positions[0][2] != columns[0].units else ""

    def read(row: int) -> np.ndarray:
        entries = [column.entries[row] for column in columns]
        if not any(entries):
            raise UnusableError("no entry")
        found = [number_of(entry, column.decimal.sign) for entry, column in zip(entries, columns, strict=True)]
        if not any(value is not None for value in found):
            raise UnusableError("no finite number")
        return np.array([np.nan if value is None else value for value in found])

    n_rows = len(columns[0].entries)
    filled = [sum(bool(column.entries[row]) for column in columns) for row in range(n_rows)]
    entries = tuple(f"{count} entries" if count else "" for count in filled)
    whole = Column(name, name, name, units, entries, entries, DecimalSign("."))
    _, problems = attempt_all(read, rows)
    check_usable(whole, problems, len(rows))
    return Modality(
        whole,
        "vector" if counts else "curve",
        (f"{name}_position",),
        (len(columns),),
        "float64",
        read,
        units,
        f"{len(columns)} columns of the table, {columns[0].header} to {columns[-1].header}",
        {f"{name}_position": Coordinate(numbers, f"number in the header of {name}", positions[0][2])},
        notes=_notes(columns, rows),
    )


def _notes(columns: Sequence[Column], rows: Sequence[int]) -> tuple[str, ...]:
    """Limits, and entries that are no numbers."""
    wrong = [
        (row, column)
        for column in columns
        for row in rows
        if column.entries[row] and number_of(column.entries[row], column.decimal.sign) is None
    ]
    notes = limit_notes(column.entries[row] for column in columns for row in rows)
    if not wrong:
        return notes
    row, column = wrong[0]
    first = f"row {row + 1}, {column.header}: {shorten(column.entries[row], _WIDTH)!r}"
    return (*notes, f"{len(wrong)} entries that are no finite number are stored as missing ({first})")
