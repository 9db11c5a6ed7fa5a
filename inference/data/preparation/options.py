"""What a user may choose about the preparation of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = [
    "Absence",
    "CurveOrder",
    "ImageFit",
    "Omission",
    "Options",
    "UnusableError",
]


ImageFit = Literal["crop", "pad", "stretch"]
CurveOrder = Literal["refuse", "sort", "cut"]


@dataclass(frozen=True)
class Options:
    """Choices; None leaves one to what the files hold.

    Attributes:
        manifest: Table with a row per sample.
        id: Column of the samples' names.
        images: Columns with paths of images.
        curves: Columns with paths of curves.
        scalars: Columns of numbers, each a modality.
        labels: Columns of known factors.
        covariates: Columns that decoders see.
        group: Column of what must stay on one side of a split.
        ignore: Columns to leave out.
        image_size: Height and width that images are brought to, pixels.
        image_fit: How an image of another shape is made to fit; see `fit_image`.
        grid_points: Positions of the common grid of a curve.
        curve_x: Column of the position in curve files, by name or by number from 1.
        curve_y: Column of the value, likewise.
        curve_order: What is done about positions that go back; see `in_order`.
        decimal: Decimal sign of the manifest and of curve files.
    """

    manifest: Path
    id: str | None = None
    images: tuple[str, ...] | None = None
    curves: tuple[str, ...] | None = None
    scalars: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    covariates: tuple[str, ...] | None = None
    group: str | None = None
    ignore: tuple[str, ...] = ()
    image_size: tuple[int, int] | None = None
    image_fit: ImageFit = "crop"
    grid_points: int | None = None
    curve_x: str | None = None
    curve_y: str | None = None
    curve_order: CurveOrder = "refuse"
    decimal: Literal[".", ","] | None = None


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
