"""A column of curve files as a modality on one grid."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from causalpima.inference.data.preparation.curve_files import Curve, read_curve
from causalpima.inference.data.preparation.fields import Header, clean_name
from causalpima.inference.data.preparation.manifest import Column, Manifest
from causalpima.inference.data.preparation.modality import (
    Coordinate,
    Modality,
    attempt_all,
    check_usable,
    entry_of,
    with_progress,
)
from causalpima.inference.data.preparation.options import CurveOrder, Options, UnusableError

__all__ = [
    "JITTER",
    "MOST_POINTS",
    "agreed_headers",
    "check_units",
    "common_grid",
    "curve_modality",
    "in_order",
    "on_grid",
]


# One grid for curves of different length and spacing.


MOST_POINTS = 256
"""Largest number of positions that is chosen without being asked for."""


def common_grid(positions: Sequence[np.ndarray], n_points: int | None) -> np.ndarray:
    """Positions from the smallest to the largest that was measured on any sample.

    Curves that all have the same positions keep them, whatever their spacing, unless a number of points is asked for.
    Otherwise the grid is even, and its number of points, if not given, is the median of the curves', at most
    `MOST_POINTS`.

    Args:
        positions: Increasing positions of each curve.
        n_points: Number of grid points, or None.
    """
    first = positions[0]
    if n_points is None and all(np.array_equal(first, other) for other in positions[1:]):
        return first
    n_points = n_points or min(MOST_POINTS, round(float(np.median([len(x) for x in positions]))))
    return np.linspace(min(x[0] for x in positions), max(x[-1] for x in positions), n_points)


def on_grid(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The curve at the grid's positions, linearly interpolated; NaN before its first point and beyond its last.

    Args:
        grid: Positions, `[position]`.
        x: Increasing positions of the curve, `[point]`.
        y: Values there, `[point]`.

    Raises:
        UnusableError: The curve lies between two positions of the grid.
    """
    values = np.interp(grid, x, y, left=np.nan, right=np.nan)
    if np.isnan(values).all():
        raise UnusableError(f"it reaches from {x[0]:g} to {x[-1]:g}, between two points of the common grid")
    return values


# Positions of a curve made increasing, or refused.


JITTER = 0.01
"""Share of a curve's range by which its position may fall behind its maximum and count as noise."""


def in_order(x: np.ndarray, y: np.ndarray, order: CurveOrder) -> tuple[np.ndarray, np.ndarray]:
    r"""Strictly increasing positions, and their values.

    A curve that runs down is turned round. Where the position falls behind its running maximum,

    $$b = \max_i \bigl(\max_{j \le i} x_j - x_i\bigr) / (\max x - \min x),$$

    by at most `JITTER`, that is noise, and the points are sorted. Beyond it, `refuse` gives the curve up, `sort` sorts
    it none the less (a spectrum in any order), and `cut` keeps the points up to the first largest position (a test with
    unloading). Values at equal positions are averaged.

    Args:
        x: Position, `[point]`, finite.
        y: Value, `[point]`, finite.
        order: What is done about positions that go back.

    Returns:
        Position and value, `[distinct positions kept]`.

    Raises:
        UnusableError: The position goes back, or is the same everywhere.
    """
    if x[0] > x[-1] and _setback(x[::-1]) < _setback(x):
        x, y = x[::-1], y[::-1]
    if np.ptp(x) == 0:
        raise UnusableError("the position is the same everywhere")
    if order == "cut":
        x, y = x[: x.argmax() + 1], y[: x.argmax() + 1]
    setback = _setback(x)
    if setback > JITTER and order != "sort":
        raise UnusableError(f"the position goes back by {setback:.0%} of its range; see --curve_order")
    positions, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return positions, np.bincount(which, weights=y) / counts


def _setback(x: np.ndarray) -> float:
    spread = np.ptp(x)
    return float((np.maximum.accumulate(x) - x).max() / spread) if spread else 0.0


# Which units the files of one kind of curve agree on.


_Headers = tuple[Header, Header]


def agreed_headers(curves: Collection[Curve]) -> _Headers:
    """Headers of position and value: the units that fit most files, the commonest names.

    Units fit a file that has them or has none.
    """
    pairs = Counter((curve.x_header.units, curve.y_header.units) for curve in curves)
    units = max(pairs, key=lambda pair: sum(count for other, count in pairs.items() if _fits(other, pair)))
    names = (_commonest(c.x_header.name for c in curves), _commonest(c.y_header.name for c in curves))
    return Header(names[0], units[0]), Header(names[1], units[1])


def check_units(curve: Curve, agreed: _Headers) -> None:
    """Refuse a curve whose units are others: nothing is converted.

    Raises:
        UnusableError: It has other units.
    """
    for own, common in zip((curve.x_header, curve.y_header), agreed, strict=True):
        if own.units and own.units != common.units:
            raise UnusableError(f"in {own.units!r} where most files have {common.units!r}; convert it")


def _fits(own: tuple[str, str], units: tuple[str, str]) -> bool:
    return all(one in ("", other) for one, other in zip(own, units, strict=True))


def _commonest(names: Iterable[str]) -> str:
    counts = Counter(name for name in names if name)
    return counts.most_common(1)[0][0] if counts else ""


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
