"""What a user may choose about the preparation of a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

__all__ = [
    "Absence",
    "CurveOrder",
    "Forms",
    "ImageFit",
    "Omission",
    "Options",
    "Roles",
    "UnusableError",
]


ImageFit = Literal["crop", "pad", "stretch"]
CurveOrder = Literal["refuse", "sort", "cut"]


_MOST_PIXELS = 65536
_MOST_POINTS = 10**6


def column_names(value: Any) -> tuple[str, ...]:
    """`a,b`, or `none`."""
    names = tuple(word.strip() for word in str(value).split(","))
    if not all(names):
        raise ValueError(f"expected names of columns with commas between them, or none, got {value!r}")
    return () if names == ("none",) else names


def height_and_width(value: Any) -> tuple[int, int]:
    """`64x96`, pixels."""
    match = re.fullmatch(r"(\d+)x(\d+)", str(value).lower())
    size = (int(match[1]), int(match[2])) if match else (0, 0)
    if not all(1 <= side <= _MOST_PIXELS for side in size):
        raise ValueError(f"expected height x width, of 1 to {_MOST_PIXELS} pixels, for example 64x96, got {value}")
    return size


def number_of_points(value: Any) -> int:
    """Positions of a grid."""
    if not re.fullmatch(r"\d{1,9}", str(value)) or not 2 <= int(value) <= _MOST_POINTS:
        raise ValueError(f"expected a whole number from 2 to {_MOST_POINTS}, got {value}")
    return int(value)


Column = Annotated[str, "COLUMN"]
Columns = Annotated[tuple[str, ...], column_names, "COLUMN,.."]


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the columns of the table are for; `none` for no column.

    Attributes:
        id: Names of the samples.
        images: Paths of images.
        curves: Paths of curves.
        scalars: Numbers that are measurements, each a modality.
        labels: Known factors, for evaluation only.
        covariates: Batch, instrument and the like, which decoders see.
        group: What must stay on one side of a split.
        ignore: Columns to leave out.
    """

    id: Column | None = None
    images: Columns | None = None
    curves: Columns | None = None
    scalars: Columns | None = None
    labels: Columns | None = None
    covariates: Columns | None = None
    group: Column | None = None
    ignore: Columns = ()


@dataclass(frozen=True, kw_only=True)
class Forms:
    """How images and curves are brought to one form.

    Attributes:
        image_size: Pixels of images; default the commonest size, shrunk to at most 128.
        image_fit: Images of another shape: crop the centre, pad with missing pixels, or stretch.
        grid_points: Positions of a curve; default the median of the files', at most 256.
        curve_x: Position in curve files: name, or number from 1; default the first column that does not count the rows.
        curve_y: Value in curve files: name, or number; default the next one.
        curve_order: Positions that go back by over 1 % of the range: refuse the curve, sort, or cut at the largest.
        decimal: Decimal sign of the table and the curve files; default found out for each column.
    """

    image_size: Annotated[tuple[int, int], height_and_width, "HxW"] | None = None
    image_fit: ImageFit = "crop"
    grid_points: Annotated[int, number_of_points, "N"] | None = None
    curve_x: Column | None = None
    curve_y: Column | None = None
    curve_order: CurveOrder = "refuse"
    decimal: Literal[".", ","] | None = None


@dataclass(frozen=True)
class Options(Roles, Forms):
    """What is chosen for a preparation; None leaves it to what the files hold.

    Attributes:
        manifest: Table with a row per sample.
    """

    manifest: Annotated[Path, "SAMPLES.csv"]


# Why a sample lacks something, or is left out.


class UnusableError(Exception):
    """This measurement of this sample can't be used, the message says why; the others of the sample can."""


@dataclass(frozen=True)
class Absence:
    """A measurement that a sample lacks.

    Attributes:
        row: Row of the manifest, from 1, without the header.
        sample: Identifier of the sample.
        modality: Name of the variable.
        entry: What stands in the manifest; empty where nothing does.
        why: The reason.
    """

    row: int
    sample: str
    modality: str
    entry: str
    why: str


@dataclass(frozen=True)
class Omission:
    """A row of the manifest that is left out; the fields as of `Absence`."""

    row: int
    sample: str
    why: str
