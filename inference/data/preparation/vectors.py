"""Columns of numbers that belong together, as one modality."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from inference.data.preparation.manifest import Column
from inference.data.preparation.modality import Coordinate, Modality, attempt_all, check_usable
from inference.data.preparation.numbers import DecimalSign
from inference.data.preparation.problems import UnusableError
from inference.data.preparation.scalars import limit_notes, number_of
from inference.results.text import shorten

__all__ = ["FEWEST_COLUMNS", "vector_modality", "vector_of"]

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
