"""Look of the figures: colours, type sizes, and how a figure is laid out and written."""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from inference.results.files import write_bytes

__all__ = [
    "ACCENT",
    "FAINT",
    "GREY",
    "WARNING",
    "Space",
    "add_heading",
    "add_note",
    "category_colours",
    "colour_legend",
    "figure_style",
    "level_colours",
    "note_width",
    "panels",
    "save_figure",
]

GREY = "#555555"
FAINT = "#c8c8c8"
ACCENT = "#0072B2"
WARNING = "#D55E00"

_OKABE_ITO = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "red": "#D55E00",
    "black": "#000000",
    "yellow": "#F0E442",
}

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "font.size": 8,
    "image.interpolation": "nearest",
    "legend.borderaxespad": 0.0,
    "legend.borderpad": 0.0,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "lines.linewidth": 1.2,
    "text.parse_math": False,
    "xtick.color": GREY,
    "xtick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.color": GREY,
    "ytick.labelsize": 7,
    "ytick.major.width": 0.6,
}

_DPI = 150
_BORDER = 12
_NOTE_WIDTH = 110
_LEAST_NOTE_WIDTH = 58
_NOTE_CHARACTER = 0.054

_LOCK = threading.RLock()


@contextmanager
def figure_style() -> Iterator[None]:
    """The style of this project on top of matplotlib's defaults, whatever the user's own matplotlibrc says.

    The settings of the process are put back on leaving. The lock keeps two threads that draw from restoring
    each other's settings. Names are never parsed as mathematics: a `$` in a name is a `$`.
    """
    with _LOCK, matplotlib.style.context(["default", _STYLE]):
        yield


def category_colours(count: int) -> np.ndarray:
    """Colours `[count, 4]` that colour-blind readers can tell apart: Okabe-Ito up to 8, then viridis in order."""
    if count <= len(_OKABE_ITO):
        return matplotlib.colors.to_rgba_array(list(_OKABE_ITO.values())[:count])
    return matplotlib.colormaps["viridis"](np.linspace(0.0, 0.95, count))


def level_colours(levels: Sequence[str]) -> np.ndarray:
    """Colours of the levels of a factor; levels that are names of colours get their own (a red circle is red)."""
    names = [level.lower() for level in levels]
    if len(set(names)) == len(names) and all(name in _OKABE_ITO for name in names):
        return matplotlib.colors.to_rgba_array([_OKABE_ITO[name] for name in names])
    return category_colours(len(levels))


@dataclass(frozen=True)
class Space:
    """Room around each panel for its labels, in inches."""

    left: float = 0.6
    below: float = 0.45
    above: float = 0.3
    right: float = 0.0


# White paper around the panels, for legends and notes.
_MARGIN = Space(left=2.0, below=1.5, above=1.5, right=5.5)
_WHITE = np.uint32(0xFFFFFFFF)


def panels(count: int, *, size: tuple[float, float], columns: int, space: Space) -> tuple[Figure, list[Axes]]:
    """A figure of `count` equal panels, row by row; sizes in inches, so that type keeps its size.

    The page around the panels is large enough for legends and notes; `save_figure` cuts it to what is drawn.

    Args:
        count: Number of panels.
        size: Width and height of one panel.
        columns: Most panels in a row.
        space: Room around each panel.
    """
    columns = max(1, min(columns, count))
    pitch = np.array([size[0] + space.left + space.right, size[1] + space.below + space.above])
    page = pitch * (columns, -(-count // columns)) + (_MARGIN.left + _MARGIN.right, _MARGIN.below + _MARGIN.above)
    figure = Figure(figsize=(float(page[0]), float(page[1])), dpi=_DPI)
    axes = []
    for i in range(count):
        x = _MARGIN.left + i % columns * pitch[0] + space.left
        y = page[1] - _MARGIN.above - (i // columns + 1) * pitch[1] + space.below
        axes.append(figure.add_axes((x / page[0], y / page[1], size[0] / page[0], size[1] / page[1])))
    return figure, axes


def colour_legend(ax: Axes, names: Sequence[str], colours: Sequence[ColorType], **place: Any) -> Legend:
    """A legend of dots; `place` goes to `Axes.legend`."""
    handles = [Line2D([], [], marker="o", linestyle="", markersize=4, color=colour) for colour in colours]
    return ax.legend(handles, names, **place)


def add_heading(figure: Figure, text: str) -> None:
    """A line above all panels."""
    left, _, top = _extent(figure)
    figure.text(left, top + 0.05 / figure.get_figheight(), text, fontsize=9, va="bottom", ha="left")


def add_note(figure: Figure, *sentences: str, width: int = _NOTE_WIDTH) -> None:
    """Small grey type under the figure: what a reader must know to read it rightly; lines of `width` characters."""
    left, bottom, _ = _extent(figure)
    text = "\n".join(line for sentence in sentences for line in textwrap.wrap(sentence, width))
    figure.text(left, bottom - 0.05 / figure.get_figheight(), text, color=GREY, fontsize=7, va="top", ha="left")


def note_width(figure: Figure) -> int:
    """Characters of a note that fit under the panels: a wider note would leave the paper beside them empty."""
    right = max(axes.get_position().x1 for axes in figure.axes)
    inches = (right - _extent(figure)[0]) * figure.get_figwidth()
    return min(_NOTE_WIDTH, max(_LEAST_NOTE_WIDTH, int(inches / _NOTE_CHARACTER)))


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure as PNG, cut to what is drawn.

    The page is drawn once and its white margin cut off: half the time of `bbox_inches="tight"`, which draws twice.
    """
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())
    inked = pixels.view(np.uint32)[..., 0] != _WHITE
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    top, left = max(rows[0] - _BORDER, 0), max(columns[0] - _BORDER, 0)
    cut = pixels[top : rows[-1] + 1 + _BORDER, left : columns[-1] + 1 + _BORDER]
    encoded = io.BytesIO()
    origin = PngInfo()
    origin.add_text("Software", "causalPIMA")
    Image.fromarray(cut[..., :3]).save(encoded, format="png", dpi=(_DPI, _DPI), pnginfo=origin)
    write_bytes(path, encoded.getbuffer())
    return path


def _extent(figure: Figure) -> tuple[float, float, float]:
    """Left edge of the panels, bottom and top of the grid with the room around its panels."""
    height = figure.get_figheight()
    left = min(axes.get_position().x0 for axes in figure.axes)
    return left, _MARGIN.below / height, 1 - _MARGIN.above / height
