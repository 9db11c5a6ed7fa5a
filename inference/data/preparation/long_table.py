"""A table with a row per point instead of a row per sample."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from inference.data.preparation.curve_files import Curve
from inference.data.preparation.headers import Header
from inference.data.preparation.manifest import Column, Manifest
from inference.data.preparation.numbers import parse_number

__all__ = ["gather_points"]

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
