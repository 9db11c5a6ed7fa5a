"""Images of any size brought to one size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from PIL import Image

from inference.data.preparation.options import ImageFit

__all__ = ["MOST_PIXELS", "common_size", "fit_image"]

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
