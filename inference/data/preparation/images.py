"""A column of image files as a modality of one size."""

from __future__ import annotations

import struct
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from causalpima.inference.data.preparation.manifest import Column, Manifest
from causalpima.inference.data.preparation.modality import Modality, attempt_all, check_usable, entry_of, with_progress
from causalpima.inference.data.preparation.options import ImageFit, Options, UnusableError
from causalpima.inference.store.input_files import open_regular

__all__ = [
    "MOST_PIXELS",
    "ImageInfo",
    "common_size",
    "fit_image",
    "image_modality",
    "inspect_image",
    "read_image",
]


# Images from files: what they are, and their pixels in [0, 1].


_GREY = {"1", "L", "LA", "La", "I;16", "I;16L", "I;16B", "I;16N"}
_COLOUR = {"P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
_ORIENTATION = 0x0112
_ON_THE_SIDE = {5, 6, 7, 8}
# What Pillow raises on damaged files.
_DAMAGED = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    IndexError,
    EOFError,
    struct.error,
    Image.DecompressionBombError,
)


@dataclass(frozen=True)
class ImageInfo:
    """Height and width as the camera was held, pixels, and 1 channel for grey or 3 for colour."""

    size: tuple[int, int]
    n_channels: int


def inspect_image(path: Path) -> ImageInfo:
    """Read the beginning of an image.

    Raises:
        UnusableError: No such file, no image, several pages, or pixels without a range (float, 32-bit).
    """
    with _opened(path) as image:
        height, width = image.height, image.width
        if image.getexif().get(_ORIENTATION) in _ON_THE_SIDE:
            height, width = width, height
        return ImageInfo((height, width), 1 if _depth(image) == 16 or image.mode in _GREY else 3)


def read_image(path: Path, n_channels: int) -> np.ndarray:
    """Read an image, turned as the camera was held.

    8-bit values are divided by 255 and 16-bit ones by 65535, whatever the brightest pixel is. Transparent images are
    laid on white. Pillow reads colours of 16 bits with the 8 upper ones.

    Args:
        path: The file.
        n_channels: 3 for colour (a grey image has three equal channels), 1 for grey.

    Returns:
        float32 in [0, 1], `[height, width, channel]`.

    Raises:
        UnusableError: As `inspect_image`, or the file is damaged.
    """
    with _opened(path) as image:
        deep = _depth(image) == 16
        turned = ImageOps.exif_transpose(image)
        pixels = np.asarray(turned if deep else _on_white(turned).convert("L" if n_channels == 1 else "RGB"))
    values = (pixels / (65535 if deep else 255)).astype(np.float32).reshape(*pixels.shape[:2], -1)
    return np.repeat(values, n_channels // values.shape[2], axis=2)


@contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large images and odd tags, which Pillow reads none the less
            with open_regular(path) as content, Image.open(content) as image:
                _check(image)
                yield image
    except FileNotFoundError:
        raise UnusableError("missing file") from None
    except UnidentifiedImageError:
        raise UnusableError("unreadable: no image that Pillow knows") from None
    except _DAMAGED as error:
        raise UnusableError(f"unreadable: {getattr(error, 'strerror', None) or error}") from error


def _check(image: Image.Image) -> None:
    n_pages = getattr(image, "n_frames", 1)
    if n_pages != 1:
        raise UnusableError(f"expected one picture, got {n_pages} pages")
    if image.mode not in _GREY | _COLOUR and _depth(image) != 16:
        raise UnusableError(f"expected 8 or 16 bits per pixel, which have a range, got Pillow's mode {image.mode}")


def _depth(image: Image.Image) -> int:
    """Bits per pixel and channel; older Pillow opens 16-bit PNG in the mode of 32 bits."""
    is_deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG")
    return 16 if is_deep else 8


def _on_white(image: Image.Image) -> Image.Image:
    if not image.has_transparency_data:
        return image
    layer = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)


# Images of any size brought to one size.


MOST_PIXELS = 128
"""Longer side of the largest images that are chosen without being asked for."""


def common_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The commonest height and width, shrunk in proportion so that the longer is at most `MOST_PIXELS`."""
    height, width = Counter(sizes).most_common(1)[0][0]
    scale = min(1.0, MOST_PIXELS / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def fit_image(image: np.ndarray, size: tuple[int, int], how: ImageFit) -> np.ndarray:
    """Resize an image with Pillow's antialiased bilinear filter, a weighted mean that stays within the image's range.

    `crop` scales height and width alike until the image covers the size, and cuts what protrudes, half on either side.
    `pad` scales them alike until the image fits into it; the borders are NaN: not measured. `stretch` scales each on
    its own. An image of the right size is left as it is.

    Args:
        image: `[height, width, channel]`, float.
        size: Height and width to come out.
        how: What is done about another aspect ratio.

    Returns:
        float32, `[*size, channel]`.
    """
    image, before = image.astype(np.float32, copy=False), image.shape[:2]
    if before == size:
        return image
    if how == "stretch":
        return _resized(image, (0.0, 0.0, float(before[1]), float(before[0])), size)
    ratios = [after / length for after, length in zip(size, before, strict=True)]
    return _cropped(image, size, max(ratios)) if how == "crop" else _padded(image, size, min(ratios))


def _cropped(image: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    height, width = (min(after / scale, before) for after, before in zip(size, image.shape, strict=False))
    top, left = (image.shape[0] - height) / 2, (image.shape[1] - width) / 2
    return _resized(image, (left, top, left + width, top + height), size)


def _padded(image: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    height, width = (min(max(1, round(n * scale)), most) for n, most in zip(image.shape, size, strict=False))
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    whole = (0.0, 0.0, float(image.shape[1]), float(image.shape[0]))
    padded = np.full((*size, image.shape[2]), np.nan, dtype=np.float32)
    padded[top : top + height, left : left + width] = _resized(image, whole, (height, width))
    return padded


def _resized(image: np.ndarray, box: tuple[float, float, float, float], size: tuple[int, int]) -> np.ndarray:
    """A box (left, top, right, lower) of the image at another size, channel by channel: Pillow has no colour floats."""
    channels = [
        Image.fromarray(np.ascontiguousarray(channel)).resize(size[::-1], Image.Resampling.BILINEAR, box=box)
        for channel in np.moveaxis(image, -1, 0)
    ]
    return np.stack([np.asarray(channel) for channel in channels], axis=-1).clip(image.min(), image.max())


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
