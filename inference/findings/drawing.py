"""Look of the figures: colours, type sizes, and how a figure is laid out and written."""

from __future__ import annotations

import io
import re
import textwrap
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.store.files import write_bytes
from causalpima.inference.store.text import shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.typing import ColorType

__all__ = [
    "ACCENT",
    "CELL",
    "FAINT",
    "GREY",
    "NAME_WIDTH",
    "NOT_IDENTIFIED",
    "WARNING",
    "Caption",
    "Space",
    "add_heading",
    "add_note",
    "category_colours",
    "colour_legend",
    "draw_heat_map",
    "figure_style",
    "file_names",
    "label_space",
    "level_colours",
    "node_heading",
    "node_headings",
    "nodes_heading",
    "note_width",
    "outcome_files",
    "outline",
    "panels",
    "save_figure",
    "unnamed_note",
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
    import matplotlib.style

    with _LOCK, matplotlib.style.context(["default", _STYLE]):
        yield


def category_colours(count: int) -> np.ndarray:
    """Colours `[count, 4]` that colour-blind readers can tell apart: Okabe-Ito up to 8, then viridis in order."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgba_array

    if count <= len(_OKABE_ITO):
        return to_rgba_array(list(_OKABE_ITO.values())[:count])
    return colormaps["viridis"](np.linspace(0.0, 0.95, count))


def level_colours(levels: Sequence[str]) -> np.ndarray:
    """Colours of the levels of a factor; levels that are names of colours get their own (a red circle is red)."""
    from matplotlib.colors import to_rgba_array

    names = [level.lower() for level in levels]
    if len(set(names)) == len(names) and all(name in _OKABE_ITO for name in names):
        return to_rgba_array([_OKABE_ITO[name] for name in names])
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
    from matplotlib.figure import Figure

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
    from matplotlib.lines import Line2D

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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

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


# What a reader is told beside each figure, by the name of its file.


class Caption(NamedTuple):
    """Where a figure belongs in a report, its title and its caption."""

    section: str
    title: str
    text: str


# Names of the files of figures, from names of modalities that may hold anything.


_MOST_CHARACTERS = 40


def file_names(modalities: Iterable[str]) -> dict[str, str]:
    """A part of a file name for every modality: its name where that is a plain word, else made from it.

    Letters lose their accents and other characters become `_`. Where nothing is left, or two names would differ in
    nothing but case, which some file systems do not tell apart, the number of the modality comes first.

    >>> list(file_names(["image", "yield strength (MPa)", "Härte", "µ-CT", "CT", "応力"]).values())
    ['image', 'yield_strength_MPa', 'Harte', '3_CT', '4_CT', '5']
    """
    slugs = {name: _slug(name) for name in modalities}
    count = Counter(slug.lower() for slug in slugs.values())
    taken = {slug.lower() for slug in slugs.values() if slug and count[slug.lower()] == 1}
    return {
        name: slug if slug.lower() in taken else _numbered(index, slug, taken)
        for index, (name, slug) in enumerate(slugs.items())
    }


def outcome_files(nodes: Iterable[str], modalities: Iterable[str]) -> dict[tuple[str, str], str]:
    """A part of a file name for every pair of a node and a modality.

    >>> outcome_files(["hue"], ["image", "yield strength"])
    {('hue', 'image'): 'hue_image', ('hue', 'yield strength'): 'hue_yield_strength'}
    """
    pairs = list(product(nodes, modalities))
    return dict(zip(pairs, file_names(map("\x1f".join, pairs)).values(), strict=True))


def _slug(name: str) -> str:
    if name.isascii() and name.replace("_", "").isalnum() and len(name) <= _MOST_CHARACTERS:
        return name
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    return re.sub("[^A-Za-z0-9]+", "_", plain).strip("_")[:_MOST_CHARACTERS]


def _numbered(index: int, slug: str, taken: set[str]) -> str:
    """The number, and an underscore more as long as another modality bears that very name."""
    name = f"{index}_{slug}" if slug else str(index)
    while name.lower() in taken:
        name += "_"
    return name


# A table of shares as a heat map with its numbers.


CELL = (0.62, 0.3)
"""Inches of one entry."""

NAME_WIDTH = 16
"""Most characters of a name."""

_CHARACTER = 0.058
_DARK = 0.6


def draw_heat_map(
    ax: Axes, table: np.ndarray, rows: Sequence[str], columns: Sequence[str], texts: Sequence[Sequence[str]]
) -> None:
    """Shares in [0, 1] from white to dark blue; NaN stays white.

    Args:
        ax: Where.
        table: `[row, column]`.
        rows: Names of the rows, as they are to stand there.
        columns: Names of the columns; upright where they would run into each other.
        texts: What is written into each entry.
    """
    ax.imshow(np.ma.masked_invalid(table), cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for i, j in np.ndindex(*table.shape):
        colour = "white" if table[i, j] > _DARK else "black"
        ax.text(j, i, texts[i][j], ha="center", va="center", fontsize=7, color=colour)
    names = [shorten(name, NAME_WIDTH) for name in columns]
    upright = max(map(len, names)) * _CHARACTER > CELL[0]
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(names)), labels=names, rotation=90 if upright else 0)
    ax.set_yticks(range(len(rows)), labels=list(rows))
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)


def label_space(columns: Sequence[str]) -> float:
    """Inches that the names of the columns need above the table."""
    longest = min(NAME_WIDTH, max(map(len, columns))) * _CHARACTER
    return 0.2 + (longest if longest > CELL[0] else 0.1)


def outline(ax: Axes, row: int, column: int) -> None:
    """A frame around one entry."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, fill=False, edgecolor=WARNING, linewidth=1.4))


# Names of nodes where they head something: those that are not identified say so.


NOT_IDENTIFIED = " (not identified)"

Identifiability = Mapping[str, Any] | None


def node_heading(name: str, identifiability: Identifiability, width: int) -> str:
    """The name of one node, `phase (not identified)` where others are identified and it is not.

    Where no node is identified, all are coordinates without a name: `nodes_heading` and `unnamed_note` say so once.

    Args:
        name: Of the node.
        identifiability: The entry of a summary; None: nothing gave the nodes a meaning.
        width: Most characters of the name itself.
    """
    identified = _identified(identifiability)
    return shorten(name, width) + (NOT_IDENTIFIED if identified and name not in identified else "")


def node_headings(names: Sequence[str], identifiability: Identifiability, width: int) -> list[str]:
    """The same for several."""
    return [node_heading(name, identifiability, width) for name in names]


def nodes_heading(names: Sequence[str], identifiability: Identifiability, width: int = 16) -> str:
    """All nodes together: `(hue, phase (not identified))`, or `coordinates (N1, N2), unnamed`."""
    listed = f"({', '.join(node_headings(names, identifiability, width))})"
    return listed if _identified(identifiability) else f"coordinates {listed}, unnamed"


def unnamed_note(identifiability: Identifiability) -> str:
    """That the nodes of a figure are coordinates; empty where one of them is identified."""
    if _identified(identifiability):
        return ""
    return "The nodes are unnamed: coordinates under one of several labellings, and another mixes them."


def _identified(identifiability: Identifiability) -> Sequence[str]:
    names: Sequence[str] = (identifiability or {}).get("identified_nodes", ())
    return names
