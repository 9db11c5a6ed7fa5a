"""A column of image files as a modality of one size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.data.preparation.image_files import ImageInfo, inspect_image, read_image
from inference.data.preparation.image_fit import common_size, fit_image
from inference.data.preparation.manifest import Column, Manifest
from inference.data.preparation.modality import Modality, attempt_all, check_usable, entry_of, with_progress
from inference.data.preparation.options import ImageFit, Options

__all__ = ["image_modality"]

_RULES: dict[ImageFit, str] = {
    "crop": "scaled to cover the size, centre cut out",
    "pad": "scaled to fit into the size, borders NaN",
    "stretch": "height and width scaled each on its own",
}


def image_modality(column: Column, manifest: Manifest, options: Options, rows: Sequence[int]) -> Modality:
    """Images of one size in [0, 1]; in colour if any of them is, grey ones then with three equal channels.

    Of JPEG and TIFF, only the beginnings are read here: damage further on shows when their pixels are read.
    Pillow looks for the orientation of a PNG behind its pixels, so these are read twice.

    Args:
        column: Column of paths.
        manifest: The manifest, for the folder that paths start from.
        options: Size of the images, and how others are made to fit.
        rows: Rows in use.

    Raises:
        ValueError: Not one image in them.
    """

    def inspect(row: int) -> ImageInfo:
        return inspect_image(manifest.resolve(entry_of(column, row)))

    infos, problems = attempt_all(inspect, with_progress(rows, f"{column.name}, sizes"))
    check_usable(column, problems, len(rows))
    size = options.image_size or common_size([info.size for info in infos.values()])
    n_channels = max(info.n_channels for info in infos.values())

    def read(row: int) -> np.ndarray:
        if row in problems:
            raise problems[row]
        image = read_image(manifest.resolve(entry_of(column, row)), n_channels)
        fitted = fit_image(image, size, options.image_fit)
        return fitted if n_channels == 3 else fitted[..., 0]

    names = ("height", "width", "channel")[: 2 if n_channels == 1 else 3]
    return Modality(
        column,
        "image",
        tuple(f"{column.name}_{name}" for name in names),
        (*size, n_channels)[: len(names)],
        "float32",
        read,
        "1",
        f"values in [0, 1]; {_RULES[options.image_fit]}",
        notes=_notes(list(infos.values()), size),
    )


def _notes(infos: Sequence[ImageInfo], size: tuple[int, int]) -> tuple[str, ...]:
    """How many images are of another size or without colour."""
    n_other = sum(info.size != size for info in infos)
    n_grey = sum(info.n_channels == 1 for info in infos)
    notes = [f"{n_other} of {len(infos)} resized to {size[0]} x {size[1]}"] if n_other else []
    if 0 < n_grey < len(infos):
        notes.append(f"{n_grey} of {len(infos)} are grey, stored with three equal channels")
    return tuple(notes)
