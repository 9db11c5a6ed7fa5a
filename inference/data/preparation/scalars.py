"""A column of numbers as a modality."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from inference.data.preparation.manifest import Column
from inference.data.preparation.modality import Modality, attempt_all, check_usable, entry_of
from inference.data.preparation.numbers import parse_number, split_limit
from inference.data.preparation.problems import UnusableError

__all__ = ["limit_notes", "number_of", "scalar_modality"]


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
