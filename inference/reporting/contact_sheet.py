"""A contact sheet: a row per cluster with its medoid, samples next to it and less typical ones, in every modality."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.analyses.sheet import EXAMPLES, Role, Sheet
from causalpima.inference.findings.arrays import ModalityArrays
from causalpima.inference.findings.cell_figures import (
    curve_axis,
    draw_curve,
    picture_of,
    position_label,
    scale_positions,
    scale_values,
    value_label,
    value_limits,
    value_range,
)
from causalpima.inference.findings.drawing import ACCENT, FAINT, GREY, figure_style, save_figure
from causalpima.inference.store.text import format_value, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ROWS_PER_PAGE", "draw_contact_sheet", "write_contact_sheet"]


ROWS_PER_PAGE = 24
_DPI = 150
_ROW, _SHEET_GAP, _BETWEEN, _LABEL = 0.95, 0.14, 0.45, 1.25
_ABOVE, _BELOW, _RIGHT = 0.58, 0.9, 2.0
_WIDE = 2.1
_SMALL = 0.62
_NARROW = 0.06
_NAME_WIDTH = 22
_NOTE = (
    "Large image, blue line or dot: the medoid, the sample nearest to the median of the cluster in the latent space. "
    "Small, pale: the next nearest. Labelled, dark, crosses: drawn at random from the rest of the cluster. Dashed, "
    "triangle: the least certain member. A cluster whose drawn members look unlike its medoid is merged. Certainty: "
    "q of being in the cluster, mean and least of its samples."
)


class _Place(NamedTuple):
    """Left edge and width of a modality in inches."""

    left: float
    width: float


class _Panel(NamedTuple):
    """Where one modality of one cluster is drawn; `bottom` of the row in inches."""

    figure: Figure
    sheet: Sheet
    name: str
    cluster: int
    place: _Place
    bottom: float
    is_last: bool

    @property
    def modality(self) -> ModalityArrays:
        """How the values are shown."""
        return self.sheet.modalities[self.name]

    @property
    def found(self) -> np.ndarray:
        """Samples of the cluster, `[m, *shape]`."""
        return self.sheet.examples[self.name][self.cluster]

    @property
    def roles(self) -> Sequence[Role]:
        """Why each of these is shown."""
        return self.sheet.roles[self.name][self.cluster]

    @property
    def of_all(self) -> np.ndarray:
        """Samples of all clusters, `[m, *shape]`."""
        return np.concatenate(list(self.sheet.examples[self.name]))

    def axes(self, left: float, bottom: float, width: float, height: float) -> Axes:
        """Axes at a place in inches."""
        page = self.figure.get_size_inches()
        return self.figure.add_axes((left / page[0], bottom / page[1], width / page[0], height / page[1]))

    def whole(self) -> Axes:
        """Axes over the whole panel."""
        return self.axes(self.place.left, self.bottom, self.place.width, _ROW)

    def finish(self, ax: Axes, label: str) -> None:
        """Numbers and a label below the last row only; why there is nothing, where there is nothing."""
        if not len(self.found):
            self.say_why_empty(ax)
        ax.tick_params(labelbottom=self.is_last, labelsize=6)
        if self.is_last:
            ax.set_xlabel(label, fontsize=7)

    def say_why_empty(self, ax: Axes) -> None:
        """That the cluster is empty, or has no sample with this modality."""
        text = "not measured" if self.sheet.sizes[self.cluster] else "empty"
        ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=7, color=GREY)


def write_contact_sheet(sheet: Sheet, path: Path) -> list[Path]:
    """Write the sheet as PNG; clusters that do not fit go to `NAME_2.png`, and so on.

    Args:
        sheet: The sheet.
        path: File of the first page.

    Returns:
        The files.

    Raises:
        OutputError: The folder can't be written to.
    """
    pages = np.array_split(np.arange(len(sheet.sizes)), -(-len(sheet.sizes) // ROWS_PER_PAGE))
    with figure_style():
        return [save_figure(draw_contact_sheet(sheet, rows), _page(path, i)) for i, rows in enumerate(pages)]


def _page(path: Path, index: int) -> Path:
    return path if index == 0 else path.with_name(f"{path.stem}_{index + 1}{path.suffix}")


def draw_contact_sheet(sheet: Sheet, clusters: np.ndarray) -> Figure:
    """Draw some clusters of a sheet, a row for each.

    Args:
        sheet: The sheet.
        clusters: Numbers of the clusters.
    """
    from matplotlib.figure import Figure

    places = dict(_places(sheet))
    width = max(place.left + place.width for place in places.values()) + _RIGHT
    height = _ABOVE + _BELOW + len(clusters) * (_ROW + _SHEET_GAP)
    figure = Figure(figsize=(width, height), dpi=_DPI)
    for row, cluster in enumerate(map(int, clusters)):
        bottom = height - _ABOVE - (row + 1) * (_ROW + _SHEET_GAP) + _SHEET_GAP
        _label_cluster(figure, sheet, cluster, bottom)
        for name, place in places.items():
            panel = _Panel(figure, sheet, name, cluster, place, bottom, row + 1 == len(clusters))
            _KINDS[_kind(panel.modality)](panel)
    _write_heads(figure, sheet, places)
    return figure


def _places(sheet: Sheet) -> Iterator[tuple[str, _Place]]:
    left = _LABEL
    for name, modality in sheet.modalities.items():
        left += 0.0 if _kind(modality) == "image" else _BETWEEN
        width = _image_width(modality) if _kind(modality) == "image" else _WIDE
        yield name, _Place(left, width)
        left += width + _BETWEEN / 2


def _kind(modality: ModalityArrays) -> str:
    return "scalar" if modality.kind != "image" and modality.decoded[0].size == 1 else modality.kind


def _aspect(modality: ModalityArrays) -> float:
    """Width over height of the picture."""
    height, width = picture_of(np.zeros(modality.decoded.shape[1:])).shape[:2]
    return float(np.clip(width / height, 0.25, 4.0))


def _image_width(modality: ModalityArrays) -> float:
    return _ROW * _aspect(modality) * (1 + _SMALL * (EXAMPLES - 1)) + _NARROW * EXAMPLES


def _label_cluster(figure: Figure, sheet: Sheet, cluster: int, bottom: float) -> None:
    page = figure.get_size_inches()
    called = "\n".join(shorten(part, 18) for part in sheet.called[cluster].split(",")) if sheet.called[cluster] else ""
    text = f"cluster {cluster}\nn = {sheet.sizes[cluster]}"
    mean, least = sheet.certainty[cluster]
    certainty = f"certainty {mean:.2f}\nleast {least:.2f}" if sheet.sizes[cluster] else ""
    how: dict[str, Any] = {"va": "top", "ha": "left"}
    figure.text(0.1 / page[0], (bottom + _ROW) / page[1], text, fontsize=9, **how)
    figure.text(
        0.1 / page[0], (bottom + _ROW - 0.34) / page[1], f"{called}\n{certainty}".strip(), fontsize=7, color=GREY, **how
    )


def _images(panel: _Panel) -> None:
    found, aspect = panel.found, _aspect(panel.modality)
    low, high = value_range(panel.modality)
    left = panel.place.left
    for i in range(max(1, len(found))):
        height = _ROW * (1.0 if i == 0 else _SMALL)
        ax = panel.axes(left, panel.bottom + (_ROW - height) / 2, height * aspect, height)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=not len(found), color=FAINT)
        if len(found):
            ax.imshow(picture_of((found[i] - low) / (high - low)), cmap="gray", vmin=0.0, vmax=1.0, aspect="auto")
            ax.set_xlabel("" if panel.roles[i] == "nearest" else panel.roles[i], fontsize=5.5, labelpad=1.5)
        else:
            panel.say_why_empty(ax)
        left += height * aspect + _NARROW


def _curves(panel: _Panel) -> None:
    ax, modality = panel.whole(), panel.modality
    for i in reversed(range(len(panel.found))):
        draw_curve(ax, curve_axis(modality).values, panel.found[i], **_line(i, panel.roles[i]))
    scale_positions(ax, modality)
    scale_values(ax, modality, value_limits(modality, [panel.of_all]))
    panel.finish(ax, position_label(modality))


def _scalars(panel: _Panel) -> None:
    ax, found = panel.whole(), panel.found.reshape(-1)
    scale_values(ax, panel.modality, value_limits(panel.modality, [panel.of_all]), side="x")
    for value, role in zip(found[1:], panel.roles[1:], strict=True):
        ax.scatter(value, 0.0, s=18, **_MARKERS[role])
    for value in found[:1]:
        ax.scatter(value, 0.0, s=34, color=ACCENT, linewidth=0)
        text = format_value(value, apart=float(np.nanmax(panel.of_all) - np.nanmin(panel.of_all)))
        ax.annotate(text, (value, 0.0), (0, 5), textcoords="offset points", ha="center", fontsize=7)
    ax.set(yticks=[], ylim=(-1, 1))
    ax.spines["left"].set_visible(False)
    panel.finish(ax, value_label(panel.name, panel.modality))


def _vectors(panel: _Panel) -> None:
    ax, found = panel.whole(), panel.found.reshape(len(panel.found), panel.modality.decoded[0].size)
    for i in reversed(range(len(found))):
        draw_curve(ax, np.arange(found.shape[1]), found[i], **_line(i, panel.roles[i]))
    scale_values(ax, panel.modality, value_limits(panel.modality, [panel.of_all]))
    ax.set_xlim(-0.5, found.shape[1] - 0.5)
    panel.finish(ax, "entry")


def _line(rank: int, role: Role) -> dict[str, Any]:
    return {"color": ACCENT, "linewidth": 1.4} if rank == 0 else dict(_LINES[role])


_LINES: Mapping[Role, Mapping[str, Any]] = {
    "nearest": {"color": FAINT, "linewidth": 0.9},
    "random": {"color": GREY, "linewidth": 0.7},
    "least certain": {"color": GREY, "linewidth": 0.9, "linestyle": "--"},
}
_MARKERS: Mapping[Role, Mapping[str, Any]] = {
    "nearest": {"color": FAINT, "linewidth": 0},
    "random": {"color": GREY, "marker": "x", "linewidth": 0.8},
    "least certain": {"color": GREY, "marker": "^", "linewidth": 0},
}


_KINDS: Mapping[str, Callable[[_Panel], None]] = {
    "image": _images,
    "curve": _curves,
    "scalar": _scalars,
    "vector": _vectors,
}


def _write_heads(figure: Figure, sheet: Sheet, places: Mapping[str, _Place]) -> None:
    page = figure.get_size_inches()
    for name, place in places.items():
        text = value_label(shorten(name, _NAME_WIDTH), sheet.modalities[name])
        figure.text(place.left / page[0], 1 - (_ABOVE - 0.12) / page[1], text, fontsize=8, va="bottom")
    figure.text(0.1 / page[0], 1 - 0.12 / page[1], f"{shorten(sheet.title, 40)}: clusters by their medoids", va="top")
    has_axes = any(_kind(modality) != "image" for modality in sheet.modalities.values())
    note: dict[str, Any] = {"x": 0.1 / page[0], "y": (_BELOW - (0.5 if has_axes else 0.14)) / page[1]}
    figure.text(s=textwrap.fill(_NOTE, int(page[0] / 0.062)), fontsize=7, color=GREY, va="top", **note)
