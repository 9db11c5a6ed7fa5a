"""A grid of images, one per cell, all on one scale."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from inference.results.arrays import ModalityArrays
from inference.results.figures.cells import Cells
from inference.results.figures.style import FAINT, WARNING, Space, panels

__all__ = ["draw_images", "panel_size", "picture_of", "value_range"]

_FEW = 16
_GAP = 0.18
_PAGE_WIDTH = 7.2
_MOST_PLANES = 6
_GAP_COLOUR = WARNING
_GREYS = matplotlib.colormaps["gray"].with_extremes(bad=_GAP_COLOUR)


def draw_images(modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw images `[C, height, width, channel]`, and say in a note how values became brightness."""
    low, high = value_range(modality)
    pictures = [picture_of((values[cell] - low) / (high - low)) for cell in cells.shown]
    height, width = pictures[0].shape[:2]
    size = panel_size(height, width, side=1.0 if len(pictures) <= _FEW else 0.72)
    columns = min(4 if len(pictures) <= _FEW else 8, max(1, int(_PAGE_WIDTH / (size[0] + _GAP))))
    titles = cells.titles(size[0] + _GAP)
    space = Space(left=_GAP, below=0.05, above=0.12 + 0.12 * (1 + titles[0].count("\n")))
    figure, axes = panels(len(pictures), size=size, columns=columns, space=space)
    for ax, cell, picture, title in zip(axes, cells.shown, pictures, titles, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(title, fontsize=7, pad=2)
        if np.isfinite(values[cell]).any():
            ax.imshow(picture, cmap=_GREYS, vmin=0.0, vmax=1.0, aspect="auto")
        else:
            _mark_missing(ax, cells.missing(cell))
    return figure, _note(low, high, values.shape[-1]) + _gap_note(values[cells.shown])


def value_range(modality: ModalityArrays) -> tuple[float, float]:
    """Range of the measured images, else of the decoded ones; images in [0, 1] or [0, 255] keep that range."""
    for values in (modality.exemplars, modality.decoded):
        finite = values[np.isfinite(values)]
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
            usual = [(0.0, top) for top in (1.0, 255.0) if low >= 0.0 and top / 2 < high <= top]
            return usual[0] if usual else (low, high if high > low else low + 1.0)
    return 0.0, 1.0


def picture_of(image: np.ndarray) -> np.ndarray:
    """Something that can be shown: `[height, width]` or `[height, width, 3]`; other channels stand side by side."""
    n_channels = image.shape[-1]
    if n_channels == 1:
        return image[..., 0]
    if n_channels == 3:
        missing = np.isnan(image).any(axis=-1, keepdims=True)
        return np.clip(np.where(missing, to_rgb(_GAP_COLOUR), image), 0.0, 1.0)
    rule = np.ones((image.shape[0], max(1, image.shape[1] // 16)))
    planes = [part for channel in _planes(n_channels) for part in (rule, image[..., channel])]
    return np.concatenate(planes[1:], axis=1)


def _planes(n_channels: int) -> np.ndarray:
    """Channels that are shown side by side: all, or six at equal distances."""
    return np.unique(np.linspace(0, n_channels - 1, min(n_channels, _MOST_PLANES)).round().astype(int))


def panel_size(height: int, width: int, side: float) -> tuple[float, float]:
    """Inches of a panel with the aspect of the picture: its shorter side as asked, its longer on half a page."""
    scale = min(side / min(height, width), (_PAGE_WIDTH / 2 - _GAP) / max(height, width))
    return max(width * scale, 0.5), max(height * scale, 0.3)


def _mark_missing(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=7, color="#777777")
    ax.spines[:].set(visible=True, color=FAINT)


def _gap_note(values: np.ndarray) -> str:
    """What the colour of gaps means, if some image has any but is not missing as a whole."""
    missing = np.isnan(values).reshape(len(values), -1)
    return " Orange: not measured." if (missing.any(axis=1) & ~missing.all(axis=1)).any() else ""


def _note(low: float, high: float, n_channels: int) -> str:
    scale = f"Values from {low:.3g} to {high:.3g} run from dark to bright, alike in all cells; others are clipped."
    if n_channels in (1, 3):
        return scale
    shown = ", ".join(str(channel) for channel in _planes(n_channels))
    return f"{scale} Side by side: channels {shown} of {n_channels}."
