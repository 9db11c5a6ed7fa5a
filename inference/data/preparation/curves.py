"""A column of curve files as a modality on one grid."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from inference.data.preparation.curve_files import Curve, read_curve
from inference.data.preparation.curve_grid import common_grid, on_grid
from inference.data.preparation.curve_order import in_order
from inference.data.preparation.curve_units import agreed_headers, check_units
from inference.data.preparation.headers import Header, clean_name
from inference.data.preparation.manifest import Column, Manifest
from inference.data.preparation.modality import (
    Coordinate,
    Modality,
    attempt_all,
    check_usable,
    entry_of,
    with_progress,
)
from inference.data.preparation.options import Options
from inference.data.preparation.problems import UnusableError

__all__ = ["curve_modality"]

_RULE = "linearly interpolated onto common positions; NaN where not measured"
_LITTLE = 0.25
_MOST_SHOWN = 3


def curve_modality(column: Column, manifest: Manifest, options: Options, rows: Sequence[int]) -> Modality:
    """Curves interpolated onto the positions from the smallest to the largest that was measured.

    Units come from the headers of the files. A file in other units than most is unusable, since nothing is converted;
    a file without units is taken to have those of the others.

    Args:
        column: Column of paths.
        manifest: The manifest, for the folder that paths start from.
        options: Columns of the files, what is done about positions that go back, points of the grid.
        rows: Rows in use.

    Raises:
        ValueError: Not one usable curve in them.
    """

    def read(row: int) -> Curve:
        entry = entry_of(column, row)
        if column.header in manifest.curves:
            curve = manifest.curves[column.header][row]
        else:
            curve = read_curve(manifest.resolve(entry), options.curve_x, options.curve_y, options.decimal)
        if len(curve.x) < 2:
            raise UnusableError(f"expected at least two points, got {len(curve.x)}")
        x, y = in_order(curve.x, curve.y, options.curve_order)
        return dataclasses.replace(curve, x=x, y=y)

    curves, problems = attempt_all(read, with_progress(rows, column.name))
    check_usable(column, problems, len(rows))
    headers = agreed_headers(curves.values())
    values, grid = _on_one_grid(curves, headers, options.grid_points, problems)
    notes = (*_notes(curves.values(), headers), *_coverage(values.values()))
    return _modality(column, headers, grid, lambda row: _value(row, values, problems), notes)


def _on_one_grid(
    curves: Mapping[int, Curve],
    headers: tuple[Header, Header],
    n_points: int | None,
    problems: dict[int, UnusableError],
) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Values of each row on the grid, and the grid; adds to the problems."""

    def alike(row: int) -> Curve:
        check_units(curves[row], headers)
        return curves[row]

    usable, others = attempt_all(alike, curves)
    grid = common_grid([curve.x for curve in usable.values()], n_points)
    values, between = attempt_all(lambda row: on_grid(grid, usable[row].x, usable[row].y), usable)
    problems |= others | between
    return values, grid


def _value(row: int, values: Mapping[int, np.ndarray], problems: Mapping[int, UnusableError]) -> np.ndarray:
    if row in problems:
        raise problems[row]
    return values[row]


def _notes(curves: Collection[Curve], headers: tuple[Header, Header]) -> list[str]:
    """What the headers do not settle."""
    notes = []
    for what, common, own in zip(
        ("positions", "values"), headers, zip(*((c.x_header, c.y_header) for c in curves), strict=True), strict=True
    ):
        n_bare = sum(not header.units for header in own)
        names = sorted({header.name for header in own if header.name})
        if common.units and n_bare:
            notes.append(f"{n_bare} files give no units of the {what}, taken to be {common.units}")
        if len(names) > 1:
            notes.append(f"the {what} are called {', '.join(names[:4])}; see --curve_x and --curve_y")
    return notes + _remarks(curves)


def _remarks(curves: Collection[Curve]) -> list[str]:
    """What files hold besides the curves, with the first three instances of each kind."""
    found: dict[str, list[str]] = defaultdict(list)
    for curve in curves:
        for kind, which in curve.remarks:
            found[kind].append(which)
    return [
        f"{kind} in {len(which)} of {len(curves)} files: {'; '.join(list(dict.fromkeys(which))[:_MOST_SHOWN])}"
        + (" and others" if len(set(which)) > _MOST_SHOWN else "")
        for kind, which in found.items()
    ]


def _coverage(values: Collection[np.ndarray]) -> list[str]:
    """A warning where a few far-reaching curves leave the rest a small part of the grid."""
    typical = float(np.median([np.isfinite(curve).mean() for curve in values]))
    if typical >= _LITTLE:
        return []
    return [f"half of the curves cover less than {typical:.0%} of the common positions; look for one in other units"]


def _modality(
    column: Column,
    headers: tuple[Header, Header],
    grid: np.ndarray,
    read: Callable[[int], np.ndarray],
    notes: Sequence[str],
) -> Modality:
    x, y = headers
    position = clean_name(x.name) or "position"
    return Modality(
        column,
        "curve",
        (position,),
        grid.shape,
        "float64",
        read,
        y.units or column.units,
        _RULE,
        {position: Coordinate(grid, x.name or "position", x.units)},
        tuple(notes),
    )
