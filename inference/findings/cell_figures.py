"""The cells as every figure shows them: the same names, colours and counts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from causalpima.inference.data.multimodal import Axis
from causalpima.inference.findings.arrays import CurveArrays, FitArrays, ModalityArrays
from causalpima.inference.findings.drawing import (
    ACCENT,
    FAINT,
    GREY,
    WARNING,
    Space,
    add_heading,
    add_note,
    category_colours,
    nodes_heading,
    panels,
)
from causalpima.inference.store.text import cell_names, format_value, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Cells",
    "cells_of",
    "curve_axis",
    "decoded_where_measured",
    "draw_cell_fits",
    "draw_curve",
    "draw_curves",
    "draw_decoded_means",
    "draw_images",
    "draw_nearest_samples",
    "draw_scalars",
    "draw_vectors",
    "majority_levels",
    "measured_somewhere",
    "panel_size",
    "picture_of",
    "position_label",
    "scale_positions",
    "scale_values",
    "value_label",
    "value_limits",
    "value_range",
]


_MOST_CELLS = 64
_CHARACTER = 0.048


@dataclass(frozen=True)
class Cells:
    """The C cells of a fit.

    Attributes:
        nodes: What the names run over: `(hue, radius)`, or `coordinates (N1, N2), unnamed`.
        names: Name of each cell by its outcomes, `[C]`.
        colours: Colour of each cell, `[C, 4]`.
        assignment: Most probable cell of each sample, `[n]`; -1 where the responsibilities are not finite.
        counts: Samples assigned to each cell, `[C]`.
        shown: Cells that figures with one panel per cell show, in order: all of them up to 64, else the fullest.
    """

    nodes: str
    names: tuple[str, ...]
    colours: np.ndarray
    assignment: np.ndarray
    counts: np.ndarray
    shown: np.ndarray

    @property
    def note(self) -> str:
        """What was left out; empty where nothing was."""
        n_cells, n_shown = len(self.names), len(self.shown)
        return f"The {n_shown} fullest of {n_cells} cells are shown." if n_shown < n_cells else ""

    def titles(self, width: float) -> list[str]:
        """Name and size of each shown cell, wrapped to panels `width` inches wide; all of equally many lines."""
        wrapped = [textwrap.wrap(self.names[cell], max(8, int(width / _CHARACTER))) for cell in self.shown]
        most = max(len(lines) for lines in wrapped)
        return [
            "\n".join([*[""] * (most - len(lines)), *lines, f"n = {self.counts[cell]}"])
            for lines, cell in zip(wrapped, self.shown, strict=True)
        ]

    def missing(self, cell: int) -> str:
        """Why a cell has nothing to show."""
        return "not measured" if self.counts[cell] else "empty"


def cells_of(fit: FitArrays) -> Cells:
    """Read names, colours and sizes of the cells off a fit."""
    names = cell_names(fit.graph.outcome_names)
    finite = np.isfinite(fit.responsibilities).all(axis=1)
    assignment = np.where(finite, fit.responsibilities.argmax(axis=1), -1)
    counts = np.bincount(assignment[finite], minlength=len(names))
    fullest = np.argsort(-counts, kind="stable")[:_MOST_CELLS]
    nodes = nodes_heading(fit.graph.node_names, fit.identifiability)
    return Cells(nodes, names, category_colours(len(names)), assignment, counts, np.sort(fullest))


# Axes of curves: positions, names, units, and the scale on which the values were modelled.


_Side = Literal["x", "y"]

_MARGIN = 0.05
_LABEL_WIDTH = 32
_MOST_DECADES = 6


def curve_axis(modality: ModalityArrays) -> Axis:
    """The positions of a curve; numbered where none are known."""
    return modality.axis or Axis("position", np.arange(modality.decoded.shape[-1], dtype=float))


def position_label(modality: ModalityArrays) -> str:
    """Name and unit of the positions: `strain (%)`."""
    axis = curve_axis(modality)
    return _with_unit(axis.name, axis.unit)


def value_label(name: str, modality: ModalityArrays) -> str:
    """What the values are, by the name of the modality: `stress (MPa)`."""
    return _with_unit(name, modality.unit)


def _with_unit(name: str, unit: str) -> str:
    """The unit stays whole where it is not most of the label."""
    after = f" ({shorten(unit, _LABEL_WIDTH // 2)})" if unit else ""
    return shorten(name, _LABEL_WIDTH - len(after)) + after


def draw_curve(ax: Axes, positions: np.ndarray, values: np.ndarray, **style: Any) -> None:
    """A line that breaks where elements are missing; a point without neighbours is a dot."""
    (line,) = ax.plot(positions, values, **style)
    there = np.pad(np.isfinite(values), 1)
    alone = there[1:-1] & ~there[:-2] & ~there[2:]
    if alone.any():
        line.set(marker=".", markersize=3, markevery=np.flatnonzero(alone).tolist(), markeredgewidth=0)


def measured_somewhere(curves: CurveArrays) -> np.ndarray:
    """Positions at which any drawn curve of a cell was measured, `[C, position]`."""
    there: np.ndarray = np.isfinite(curves.examples).any(axis=1)
    return there


def decoded_where_measured(modality: ModalityArrays) -> np.ndarray:
    """Decoded means `[C, position]`, NaN where no drawn curve of the cell was measured, unless that is everywhere."""
    if modality.curves is None:
        return modality.decoded
    measured = measured_somewhere(modality.curves)
    return np.where(measured | ~measured.any(axis=1, keepdims=True), modality.decoded, np.nan)


def scale_positions(ax: Axes, modality: ModalityArrays) -> None:
    """From the first to the last position, with few numbers."""
    from matplotlib.ticker import MaxNLocator

    positions = curve_axis(modality).values
    low, high = float(positions.min()), float(positions.max())
    ax.set_xlim(low, high if high > low else low + 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4))


def scale_values(ax: Axes, modality: ModalityArrays, limits: tuple[float, float], side: _Side = "y") -> None:
    """Limits, and a logarithmic scale where the values were modelled on one; `side` is where the values stand."""
    from matplotlib.ticker import NullLocator

    ax.set(**{f"{side}lim": limits})
    if modality.transform == "identity":
        return
    options = {"linear_width": modality.knee} if modality.transform == "asinh" else {}
    (ax.set_xscale if side == "x" else ax.set_yscale)(modality.transform, **options)
    axis = ax.xaxis if side == "x" else ax.yaxis
    axis.set_ticks(_decades(modality, limits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def _decades(modality: ModalityArrays, limits: tuple[float, float]) -> list[float]:
    """Powers of ten between the limits, for `asinh` those above its knee, of either sign, and zero; else the limits."""
    smallest = modality.knee if modality.transform == "asinh" else limits[0]
    largest = max(abs(limit) for limit in limits)
    powers = 10.0 ** np.arange(np.floor(np.log10(smallest)), np.ceil(np.log10(largest)) + 1)
    powers = powers[powers >= smallest]
    powers = powers[:: len(powers) // _MOST_DECADES + 1]
    ticks = powers if modality.transform == "log" else np.concatenate([-powers[::-1], [0.0], powers])
    between = ticks[(ticks >= limits[0]) & (ticks <= limits[1])]
    return [float(tick) for tick in (between if len(between) > 1 else limits)]


def value_limits(modality: ModalityArrays, arrays: Iterable[np.ndarray]) -> tuple[float, float]:
    """Lowest and highest finite value with a margin, on the scale of `scale_values`."""
    values = np.concatenate([np.ravel(array).astype(float) for array in arrays])
    finite = values[np.isfinite(values) & ((values > 0) | (modality.transform != "log"))]
    if not finite.size:
        return (0.0, 1.0) if modality.transform != "log" else (1.0, 10.0)
    scaled = _forward(modality, np.array([finite.min(), finite.max()]))
    margin = _MARGIN * float(np.ptp(scaled)) or 0.5
    low, high = _backward(modality, scaled + np.array([-margin, margin]))
    return float(low), float(high)


def _forward(modality: ModalityArrays, values: np.ndarray) -> np.ndarray:
    if modality.transform == "log":
        return np.log(values)
    return np.arcsinh(values / modality.knee) if modality.transform == "asinh" else values


def _backward(modality: ModalityArrays, scaled: np.ndarray) -> np.ndarray:
    if modality.transform == "log":
        return np.exp(scaled)
    return modality.knee * np.sinh(scaled) if modality.transform == "asinh" else scaled


# The curves of all cells on common axes.


_MOST_OVERLAID = 8
_FEW = 16
_CURVE_GAP = 0.22


def draw_curves(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw curves `[C, position]`: up to 8 in one panel, more in a panel each with the range of all behind it.

    Elements that are NaN break a line. Measured and decoded curves have the same limits, so that the two figures can
    be laid side by side.
    """
    if len(cells.shown) <= _MOST_OVERLAID:
        return _overlaid(name, modality, values, cells), ""
    return _one_panel_each(name, modality, values, cells), "Grey: the range of the curves of all cells."


def _overlaid(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> Figure:
    figure, (ax,) = panels(1, size=(4.0, 2.5), columns=1, space=Space(above=0.1))
    for cell in cells.shown:
        missing = "" if np.isfinite(values[cell]).any() else f", {cells.missing(cell)}"
        label = f"{cells.names[cell]}  n = {cells.counts[cell]}{missing}"
        draw_curve(ax, curve_axis(modality).values, values[cell], color=cells.colours[cell], label=label)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
    ax.set(xlabel=position_label(modality), ylabel=value_label(name, modality))
    _scale(ax, modality)
    return figure


def _one_panel_each(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> Figure:
    columns, size = (4, (1.4, 1.0)) if len(cells.shown) <= _FEW else (8, (0.8, 0.6))
    titles = cells.titles(size[0] + _CURVE_GAP)
    space = Space(left=_CURVE_GAP, below=0.34, above=0.12 + 0.12 * (1 + titles[0].count("\n")))
    figure, axes = panels(len(cells.shown), size=size, columns=columns, space=space)
    shown = np.where(np.isfinite(values), values, np.nan)[cells.shown]
    lowest, highest = np.fmin.reduce(shown), np.fmax.reduce(shown)
    for i, (ax, cell, title) in enumerate(zip(axes, cells.shown, titles, strict=True)):
        ax.fill_between(curve_axis(modality).values, lowest, highest, color="#e4e4e4", linewidth=0)
        draw_curve(ax, curve_axis(modality).values, values[cell], color=ACCENT)
        _scale(ax, modality)
        ax.set_title(title, fontsize=7, pad=2)
        if not np.isfinite(values[cell]).any():
            ax.text(0.5, 0.5, cells.missing(cell), transform=ax.transAxes, ha="center", va="center", fontsize=7)
        _label_edges(ax, name, modality, left=i % columns == 0, bottom=i + columns >= len(cells.shown))
    return figure


def _scale(ax: Axes, modality: ModalityArrays) -> None:
    scale_positions(ax, modality)
    scale_values(ax, modality, value_limits(modality, [modality.exemplars, decoded_where_measured(modality)]))


def _label_edges(ax: Axes, name: str, modality: ModalityArrays, *, left: bool, bottom: bool) -> None:
    """Numbers only along the left and the lower edge of the page: all panels have the same axes."""
    ax.tick_params(labelsize=6)
    if bottom:
        ax.set_xlabel(position_label(modality), fontsize=7, labelpad=1)
    else:
        ax.set_xticks([])
    if left:
        ax.set_ylabel(value_label(name, modality), fontsize=7)
    else:
        ax.set_yticks([])


# What is known about the samples of a cell, in a few words.


def majority_levels(fit: FitArrays, members: np.ndarray, width: int, most: int = 3) -> list[str]:
    """The commonest level of each known factor among some samples, with its share: `octet 98 %`.

    Args:
        fit: The fit.
        members: Which samples, bool `[n]`.
        width: Most characters of a level.
        most: Most factors.

    Returns:
        One text per factor, in their order; `unknown` where no sample of the cell has a level.
    """
    return [_majority(fit, name, members, width) for name in list(fit.factors)[:most]]


def _majority(fit: FitArrays, name: str, members: np.ndarray, width: int) -> str:
    codes = fit.factors[name][members]
    known = codes[codes >= 0]
    if not known.size:
        return "unknown"
    counts = np.bincount(known)
    code, levels = int(counts.argmax()), fit.factor_levels.get(name, ())
    level = levels[code] if code < len(levels) else str(code)
    return f"{shorten(level, width)} {counts[code] / known.size:.0%}"


# Measured curves of each cell with the curve that the model gives it: a small panel per cell.


_MOST_PANELS = 16
_SIZE = (1.65, 1.25)
_FIT_GAP = 0.24
_LEVEL_WIDTH = 22
_MEASURED = "#9a9a9a"


def draw_cell_fits(fit: FitArrays, name: str, cells: Cells) -> Figure | None:
    """A panel per cell, all on the same axes; None for a modality that is no curve.

    Drawn are measured curves, the law of the cell with the 95 % interval of its parameters (else the decoded mean),
    and two standard deviations of single curves about it.

    Args:
        fit: The fit.
        name: The modality.
        cells: Names and sizes of the cells.
    """
    modality = fit.modalities[name]
    if modality.curves is None:
        return None
    shown = _fullest(cells)
    titles = _titles(fit, cells, shown)
    columns = _columns(len(shown))
    space = Space(left=_FIT_GAP, below=0.34, above=0.08 + 0.12 * (titles[0].count("\n") + 1))
    figure, axes = panels(len(shown), size=_SIZE, columns=columns, space=space)
    limits = _limits(modality, modality.curves, shown)
    for i, (ax, cell, title) in enumerate(zip(axes, shown, titles, strict=True)):
        _draw_cell(ax, modality, modality.curves, cells, int(cell))
        scale_positions(ax, modality)
        scale_values(ax, modality, limits)
        ax.set_title(title, fontsize=7, pad=2)
        _label_page_edges(ax, name, modality, left=i % columns == 0, bottom=i + columns >= len(shown))
    _add_legend(axes[min(columns, len(shown)) - 1], modality)
    what = "the fitted law of each cell" if modality.physics else "the decoded mean of each cell"
    add_heading(figure, f"{shorten(name, 40)}: measured curves and {what}\ncells by {cells.nodes}")
    add_note(figure, *_notes(fit, name, cells, shown))
    return figure


def _fullest(cells: Cells) -> np.ndarray:
    """The fullest 16 of the cells that have samples, in order; of an empty fit the first."""
    fullest = np.argsort(-cells.counts, kind="stable")[:_MOST_PANELS]
    filled = fullest[cells.counts[fullest] > 0]
    return np.sort(filled) if len(filled) else fullest[:1]


def _columns(count: int) -> int:
    return count if count <= 3 else 2 if count == 4 else 3 if count <= 6 else 4


def _titles(fit: FitArrays, cells: Cells, shown: np.ndarray) -> list[str]:
    """Name and size of a cell, and what its samples mostly are."""
    known = [majority_levels(fit, cells.assignment == cell, _LEVEL_WIDTH) for cell in shown]
    return [
        "\n".join([f"{shorten(cells.names[cell], 24)}  n = {cells.counts[cell]}", *levels])
        for cell, levels in zip(shown, known, strict=True)
    ]


def _middle(modality: ModalityArrays) -> np.ndarray:
    return modality.decoded if modality.physics is None else modality.physics.curve


def _limits(modality: ModalityArrays, curves: CurveArrays, shown: np.ndarray) -> tuple[float, float]:
    middle = np.where(measured_somewhere(curves), _middle(modality), np.nan)
    if np.isfinite(middle[shown]).any():
        return value_limits(modality, [curves.examples[shown], middle[shown]])
    return value_limits(modality, [_middle(modality)[shown]])


def _draw_cell(ax: Axes, modality: ModalityArrays, curves: CurveArrays, cells: Cells, cell: int) -> None:
    positions, colour = curve_axis(modality).values, cells.colours[cell]
    measured = measured_somewhere(curves)[cell]
    _draw_band(ax, positions, curves.lower, curves.upper, cell, measured, color=colour, alpha=0.16)
    for values in _measured(modality, curves.examples[cell]):
        draw_curve(ax, positions, values, color=_MEASURED, linewidth=0.4, alpha=0.7)
    if modality.physics is not None:
        lower, upper = modality.physics.curve_lower, modality.physics.curve_upper
        _draw_band(ax, positions, lower, upper, cell, measured, color=colour, alpha=0.45, zorder=3)
        ax.plot(positions, modality.physics.curve[cell], color=colour, linewidth=0.9, linestyle=":", zorder=3)
    middle = _middle(modality)[cell]
    draw_curve(ax, positions, np.where(measured, middle, np.nan), color=colour, linewidth=1.3, zorder=4)
    if not measured.any():
        ax.text(0.5, 0.9, cells.missing(cell), transform=ax.transAxes, ha="center", va="top", fontsize=7)


def _measured(modality: ModalityArrays, examples: np.ndarray) -> np.ndarray:
    """The curves themselves; of curves of zeros and ones their mean, since lines through them hide each other."""
    there = np.isfinite(examples)
    if modality.likelihood != "bernoulli":
        return examples[there.any(axis=1)]
    count = there.sum(axis=0)
    return np.where(count > 0, np.where(there, examples, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)[None]


def _draw_band(
    ax: Axes,
    positions: np.ndarray,
    lower: np.ndarray | None,
    upper: np.ndarray | None,
    cell: int,
    measured: np.ndarray,
    **style: Any,
) -> None:
    if lower is not None and upper is not None:
        ax.fill_between(positions, lower[cell], upper[cell], where=measured, linewidth=0, **style)


def _label_page_edges(ax: Axes, name: str, modality: ModalityArrays, *, left: bool, bottom: bool) -> None:
    """Numbers and names along the left and the lower edge of the page: all panels have the same axes."""
    ax.tick_params(labelsize=6, labelleft=left, labelbottom=bottom)
    if bottom:
        ax.set_xlabel(position_label(modality), fontsize=7, labelpad=1)
    if left:
        ax.set_ylabel(value_label(name, modality), fontsize=7)


def _add_legend(ax: Axes, modality: ModalityArrays) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    measured = "mean of measured" if modality.likelihood == "bernoulli" else "measured"
    entries: dict[str, Artist] = {measured: Line2D([], [], color=_MEASURED, linewidth=0.6)}
    entries["decoded mean" if modality.physics is None else "law"] = Line2D([], [], color=GREY, linewidth=1.3)
    if modality.physics is not None:
        entries["95 % interval of the law"] = Patch(color=GREY, alpha=0.6, linewidth=0)
    if modality.curves is not None and modality.curves.lower is not None:
        entries[_band_name(modality)] = Patch(color=GREY, alpha=0.2, linewidth=0)
    ax.legend(list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(1.05, 1.0))


def _band_name(modality: ModalityArrays) -> str:
    """What the wide band is; where one variance serves a whole modality, its width follows no position."""
    has_one = modality.noise_sd is not None and np.ptp(modality.noise_sd) == 0
    return "± 2 sd (one noise sd for all positions)" if has_one else "± 2 sd of single curves"


def _notes(fit: FitArrays, name: str, cells: Cells, shown: np.ndarray) -> list[str]:
    modality, present = fit.modalities[name], fit.present[name]
    curves = modality.curves
    assert curves is not None
    n_cells, most = int((cells.counts > 0).sum()), curves.examples.shape[1]
    has_more = any((present & (cells.assignment == cell)).sum() > most for cell in shown)
    has_gaps = not measured_somewhere(curves)[shown].all()
    notes = {
        f"The {len(shown)} fullest of {n_cells} cells with samples are shown.": len(shown) < n_cells,
        f"Of each cell at most {most} measured curves are shown, chosen at random.": has_more,
        "Dotted: no drawn curve of the cell was measured there.": has_gaps and modality.physics is not None,
        "Decoded means end where no drawn curve of the cell was measured.": has_gaps and modality.physics is None,
        "Below the name of a cell: the commonest level of each known factor and its share.": bool(fit.factors),
    }
    return [note for note, holds in notes.items() if holds]


# A grid of images, one per cell, all on one scale.


_IMAGE_GAP = 0.18
_PAGE_WIDTH = 7.2
_MOST_PLANES = 6
_GAP_COLOUR = WARNING


def draw_images(modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw images `[C, height, width, channel]`, and say in a note how values became brightness."""
    from matplotlib import colormaps

    low, high = value_range(modality)
    pictures = [picture_of((values[cell] - low) / (high - low)) for cell in cells.shown]
    height, width = pictures[0].shape[:2]
    size = panel_size(height, width, side=1.0 if len(pictures) <= _FEW else 0.72)
    columns = min(4 if len(pictures) <= _FEW else 8, max(1, int(_PAGE_WIDTH / (size[0] + _IMAGE_GAP))))
    titles = cells.titles(size[0] + _IMAGE_GAP)
    space = Space(left=_IMAGE_GAP, below=0.05, above=0.12 + 0.12 * (1 + titles[0].count("\n")))
    figure, axes = panels(len(pictures), size=size, columns=columns, space=space)
    greys = colormaps["gray"].with_extremes(bad=_GAP_COLOUR)
    for ax, cell, picture, title in zip(axes, cells.shown, pictures, titles, strict=True):
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(title, fontsize=7, pad=2)
        if np.isfinite(values[cell]).any():
            ax.imshow(picture, cmap=greys, vmin=0.0, vmax=1.0, aspect="auto")
        else:
            _mark_missing(ax, cells.missing(cell))
    return figure, _note(low, high, values.shape[-1]) + _image_gap_note(values[cells.shown])


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
    from matplotlib.colors import to_rgb

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
    scale = min(side / min(height, width), (_PAGE_WIDTH / 2 - _IMAGE_GAP) / max(height, width))
    return max(width * scale, 0.5), max(height * scale, 0.3)


def _mark_missing(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=7, color="#777777")
    ax.spines[:].set(visible=True, color=FAINT)


def _image_gap_note(values: np.ndarray) -> str:
    """What the colour of gaps means, if some image has any but is not missing as a whole."""
    missing = np.isnan(values).reshape(len(values), -1)
    return " Orange: not measured." if (missing.any(axis=1) & ~missing.all(axis=1)).any() else ""


def _note(low: float, high: float, n_channels: int) -> str:
    ends = " to ".join(format_value(end, 3, high - low) for end in (low, high))
    scale = f"Values from {ends} run from dark to bright, alike in all cells; others are clipped."
    if n_channels in (1, 3):
        return scale
    shown = ", ".join(str(channel) for channel in _planes(n_channels))
    return f"{scale} Side by side: channels {shown} of {n_channels}."


# One number per cell as dots along an axis, one row per cell.


_WIDTH = 3.2
_ROW = 0.2


def draw_scalars(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw one value per cell `[C, 1]` as dots; where they are decoded, the nearest measured samples as open circles.

    Measured and decoded values have the same limits, so that the two figures can be laid side by side.
    """
    rows, measured = _shown_values(values, cells), _shown_values(modality.exemplars, cells)
    figure, (ax,) = panels(1, size=(_WIDTH, max(0.5, _ROW * len(rows))), columns=1, space=Space(above=0.1))
    scale_values(ax, modality, value_limits(modality, [modality.exemplars, modality.decoded]), side="x")
    _label_scalars(ax, rows, cells)
    ax.set_xlabel(value_label(name, modality))
    places = np.arange(len(rows))
    ax.scatter(rows, places, s=22, color=cells.colours[cells.shown], linewidth=0, zorder=3)
    if np.array_equal(rows, measured, equal_nan=True):
        return figure, ""
    ax.scatter(measured, places, s=34, facecolor="none", edgecolor=GREY, linewidth=0.8, zorder=2)
    return figure, "Open circles: the measured sample nearest to the mean of each cell."


def _shown_values(values: np.ndarray, cells: Cells) -> np.ndarray:
    """Value of each shown cell; NaN where there is none."""
    rows = values[cells.shown].reshape(len(cells.shown)).astype(float)
    return np.where(np.isfinite(rows), rows, np.nan)


def _label_scalars(ax: Axes, rows: np.ndarray, cells: Cells) -> None:
    """Names and sizes of the cells from the top down, with why a cell has no dot."""
    names = [f"{cells.names[cell]}  n = {cells.counts[cell]}" for cell in cells.shown]
    ax.set_yticks(range(len(rows)), labels=names)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    ax.tick_params(axis="y", length=0)
    middle: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "center", "va": "center"}
    for i in map(int, np.flatnonzero(np.isnan(rows))):
        ax.text(0.5, i, cells.missing(cells.shown[i]), fontsize=7, color="#777777", **middle)


# Vectors as the rows of a heat map, one row per cell.


_MOST_NUMBERS = 12


def draw_vectors(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """Draw vectors `[C, entry]`: up to 12 entries with their numbers, more as colours on one scale."""
    rows = values[cells.shown].reshape(len(cells.shown), -1)
    few = rows.shape[1] <= _MOST_NUMBERS
    size = (max(1.2, 0.5 * rows.shape[1]) if few else 5.0, max(0.5, _ROW * len(rows)))
    figure, (ax,) = panels(1, size=size, columns=1, space=Space(above=0.1))
    shades = _per_column(rows) if few else rows
    low, high = (0.0, 1.0) if few else _value_range(modality)
    marks = ax.imshow(np.ma.masked_invalid(shades), cmap="viridis", vmin=low, vmax=high, aspect="auto")
    _label_vectors(ax, rows, cells)
    if few:
        base = _base(rows)
        _write_numbers(ax, rows - base, shades)
        unit = f" in {shorten(modality.unit, 20)}" if modality.unit else ""
        less = f" less {base:.15g}" if base else ""
        scale = f"Numbers are values{less}{unit}; colour runs from the lowest to the highest cell of each entry."
        return figure, scale + _vector_gap_note(rows)
    bar = figure.colorbar(marks, cax=ax.inset_axes((1.02, 0.0, 0.02, 1.0)), label=value_label(name, modality))
    bar.outline.set_visible(False)
    return figure, _vector_gap_note(rows).strip()


def _vector_gap_note(rows: np.ndarray) -> str:
    missing = np.isnan(rows)
    return " White: not measured." if (missing.any(axis=1) & ~missing.all(axis=1)).any() else ""


def _label_vectors(ax: Axes, rows: np.ndarray, cells: Cells) -> None:
    names = [f"{cells.names[cell]}  n = {cells.counts[cell]}" for cell in cells.shown]
    ax.set_yticks(range(len(rows)), labels=names)
    if rows.shape[1] <= _MOST_NUMBERS:
        ax.set_xticks(range(rows.shape[1]))
    ax.set(xlabel="entry")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for i in map(int, np.flatnonzero(~np.isfinite(rows).any(axis=1))):
        text = cells.missing(cells.shown[i])
        ax.text((rows.shape[1] - 1) / 2, i, text, ha="center", va="center", fontsize=7, color="#777777")


def _write_numbers(ax: Axes, rows: np.ndarray, shades: np.ndarray) -> None:
    for i, j in np.argwhere(np.isfinite(rows)):
        colour = "black" if shades[i, j] > 0.6 else "white"
        ax.text(j, i, f"{rows[i, j]:.3g}", ha="center", va="center", fontsize=6, color=colour)


def _base(values: np.ndarray) -> float:
    """A round number to subtract where values differ in their fourth digit at most, and would be written alike."""
    known = values[np.isfinite(values)]
    width = float(np.ptp(known)) if known.size else 0.0
    if width == 0 or np.abs(known).min() < 1000 * width:
        return 0.0
    unit = 10.0 ** np.ceil(np.log10(width))
    return float(np.round(np.median(known) / unit) * unit)


def _per_column(rows: np.ndarray) -> np.ndarray:
    """Each entry scaled to [0, 1] over the cells; 0.5 where all cells agree."""
    finite = np.where(np.isfinite(rows), rows, np.nan)
    low = np.min(finite, axis=0, initial=np.inf, where=np.isfinite(finite))
    high = np.max(finite, axis=0, initial=-np.inf, where=np.isfinite(finite))
    spread = high - low
    flat = ~(spread > 0)
    return np.where(flat & np.isfinite(finite), 0.5, (finite - np.where(flat, 0.0, low)) / np.where(flat, 1.0, spread))


def _value_range(modality: ModalityArrays) -> tuple[float, float]:
    for values in (modality.exemplars, modality.decoded):
        finite = values[np.isfinite(values)]
        if finite.size:
            return float(finite.min()), float(finite.max())
    return 0.0, 1.0


# One value per cell, drawn as its modality asks: the measured sample nearest to each cell, or its decoded mean.


_MEANING = {
    "bernoulli": "Decoded values are probabilities.",
    "categorical": "Decoded values are the codes of the most probable categories.",
}


def draw_nearest_samples(fit: FitArrays, name: str, cells: Cells) -> Figure:
    """The measured sample nearest to the mean of each cell."""
    modality = fit.modalities[name]
    return _draw(fit, name, modality.exemplars, cells, "measured sample nearest to the mean of each cell")


def draw_decoded_means(fit: FitArrays, name: str, cells: Cells) -> Figure:
    """What the decoder makes of the mean of each cell; a curve where samples of the cell were measured."""
    modality = fit.modalities[name]
    values, note = modality.decoded, _meaning(modality)
    if modality.curves is not None:
        values = decoded_where_measured(modality)
        if np.isnan(values).any():
            note = f"{note} Curves end where none of the cell was measured.".strip()
    return _draw(fit, name, values, cells, "decoded mean of each cell", note)


def _meaning(modality: ModalityArrays) -> str:
    if modality.transform != "identity":
        return f"Means were taken on the {modality.transform} scale; there, noise is even."
    return _MEANING.get(modality.likelihood, "")


def _draw(fit: FitArrays, name: str, values: np.ndarray, cells: Cells, what: str, meaning: str = "") -> Figure:
    modality: ModalityArrays = fit.modalities[name]
    figure, note = _panels(name, modality, values, cells)
    add_heading(figure, f"{shorten(name, 40)}: {what}\ncells by {cells.nodes}")
    add_note(figure, note, meaning, cells.note, _presence(fit, name))
    return figure


def _panels(name: str, modality: ModalityArrays, values: np.ndarray, cells: Cells) -> tuple[Figure, str]:
    """The figure, and what must be said of it."""
    if modality.kind == "image":
        return draw_images(modality, values, cells)
    if modality.kind == "curve":
        return draw_curves(name, modality, values, cells)
    draw = draw_scalars if values[0].size == 1 else draw_vectors
    return draw(name, modality, values, cells)


def _presence(fit: FitArrays, name: str) -> str:
    present = fit.present[name]
    return "" if present.all() else f"Measured in {int(present.sum())} of {len(present)} samples."
