"""A kind of measurement as it goes into the file: its description, and how a sample's is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

from inference.data.preparation.manifest import Column
from inference.data.preparation.problems import UnusableError

__all__ = ["Coordinate", "Modality", "attempt_all", "check_usable", "entry_of", "with_progress"]


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
