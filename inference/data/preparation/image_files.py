"""Images from files: what they are, and their pixels in [0, 1]."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from inference.data.preparation.problems import UnusableError
from inference.results.input_files import open_regular

__all__ = ["ImageInfo", "inspect_image", "read_image"]

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
