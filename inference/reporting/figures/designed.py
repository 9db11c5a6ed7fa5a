"""What a designed node does to a modality: measured means by outcome, and their differences to the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from causalpima.inference.clusters.design import DesignedEffect, DesignedNode
from causalpima.inference.findings.arrays import FitArrays, ModalityArrays
from causalpima.inference.findings.drawing import (
    GREY,
    Space,
    add_heading,
    add_note,
    category_colours,
    note_width,
    panels,
)
from causalpima.inference.reporting.figures.cells import (
    curve_axis,
    draw_curve,
    panel_size,
    picture_of,
    position_label,
    scale_values,
    value_label,
    value_limits,
    value_range,
)
from causalpima.inference.store.text import shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_designed",
]


_MOST_OUTCOMES = 6
_NAME_WIDTH = 14
_BAND = 0.18


def draw_designed(fit: FitArrays, node: str, name: str) -> Figure | None:
    """Means by outcome, and each outcome minus the first with 95 % intervals; None where there is no such effect.

    Args:
        fit: The fit.
        node: The designed node.
        name: The modality.
    """
    found = fit.designed[node]
    effect = found.effects.get(name)
    if effect is None or effect.mean.ndim != fit.modalities[name].decoded.ndim:
        return None
    modality = fit.modalities[name]
    draw = _draw_images if modality.kind == "image" else _draw_lines
    figure, note = draw(name, modality, found, effect)
    explained = f"{100 * effect.explained:.1f} % of the variance, p = {effect.test.p_value:.2g}"
    add_heading(figure, f"{shorten(name, 40)}: effect of {shorten(node, _NAME_WIDTH)} ({explained})")
    many = len(found.outcomes) > _MOST_OUTCOMES
    left_out = f"Shown are the first {_MOST_OUTCOMES} of {len(found.outcomes)} outcomes." if many else ""
    gaps = not fit.present[name].all() or modality.missing_elements > 0
    measured = " Where gaps depend on the outcome, they mislead." if gaps else ""
    add_note(
        figure, f"Means of what was measured, without a model.{measured}", note, left_out, width=note_width(figure)
    )
    return figure


def _names(found: DesignedNode) -> list[str]:
    return [shorten(outcome, _NAME_WIDTH) for outcome in found.outcomes[:_MOST_OUTCOMES]]


def _draw_images(
    name: str, modality: ModalityArrays, found: DesignedNode, effect: DesignedEffect
) -> tuple[Figure, str]:
    """Outcomes above, differences below."""
    names, (low, high), channels = _names(found), value_range(modality), effect.mean.shape[-1]
    pictures = [picture_of((image - low) / (high - low)) for image in effect.mean[: len(names)]]
    height, width = pictures[0].shape[:2]
    size = panel_size(height, width, side=1.1)
    figure, axes = panels(2 * len(names), size=size, columns=len(names), space=Space(0.12, 0.05, 0.24))
    largest = float(np.nanmax(np.abs(effect.difference))) or 1.0
    for ax, outcome, picture in zip(axes, names, pictures, strict=False):
        _show(ax, outcome, picture, "gray", (0.0, 1.0))
    for ax, outcome, change in zip(axes[len(names) + 1 :], names[1:], effect.difference, strict=False):
        scaled = 0.5 + 0.5 * change / largest if channels == 3 else change
        _show(
            ax, f"{outcome} − {names[0]}", picture_of(scaled), "PuOr", (0, 1) if channels == 3 else (-largest, largest)
        )
    axes[len(names)].set_visible(False)
    how = "grey is no change" if channels == 3 else "white is no change, orange is less, purple is more"
    unit = f" {shorten(modality.unit, _NAME_WIDTH)}" if modality.unit else ""
    return figure, f"Differences on one scale: {how}; the largest is {largest:.3g}{unit}."


def _show(ax: Axes, title: str, picture: np.ndarray, colours: str, limits: tuple[float, float]) -> None:
    ax.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.set_title(title, fontsize=7, pad=2)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_lines(name: str, modality: ModalityArrays, found: DesignedNode, effect: DesignedEffect) -> tuple[Figure, str]:
    """Means on the left, differences with their intervals on the right."""
    names = _names(found)
    figure, (left, right) = panels(2, size=(2.5, 1.6), columns=2, space=Space(left=0.7, below=0.5, above=0.25))
    colours = category_colours(len(names))
    draw = _draw_curves if modality.kind == "curve" else _draw_entries
    draw(left, modality, names, colours, effect.mean, None)
    draw(right, modality, names[1:], colours[1:], effect.difference, (effect.lower, effect.upper))
    right.axhline(0.0, color=GREY, linewidth=0.6, linestyle="--")
    if modality.kind == "curve":
        scale_values(left, modality, value_limits(modality, [effect.mean]))
    unit = f" ({shorten(modality.unit, 12)})" if modality.unit else ""
    left.set(title="means", ylabel=value_label(name, modality))
    right.set(title=f"difference from {names[0]}", ylabel=f"difference{unit}")
    handles, labels = left.get_legend_handles_labels()
    right.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.03, 1.0))
    shown = "Bands" if modality.kind == "curve" else "Bars"
    return figure, f"{shown}: 95 % intervals, element by element; groups count, not their samples."


def _draw_curves(
    ax: Axes,
    modality: ModalityArrays,
    names: list[str],
    colours: np.ndarray,
    values: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    positions = curve_axis(modality).values
    for index, (label, colour) in enumerate(zip(names, colours, strict=True)):
        draw_curve(ax, positions, values[index], color=colour, label=label)
        if interval is not None:
            ax.fill_between(positions, interval[0][index], interval[1][index], color=colour, alpha=_BAND, linewidth=0)
    ax.set_xlabel(position_label(modality))


def _draw_entries(
    ax: Axes,
    modality: ModalityArrays,
    names: list[str],
    colours: np.ndarray,
    values: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    """A dot per entry of a vector, those of the outcomes beside each other."""
    for index, (label, colour) in enumerate(zip(names, colours, strict=True)):
        flat = values[index].reshape(-1)
        place = np.arange(len(flat)) + 0.6 * ((index + 0.5) / len(names) - 0.5)
        ax.plot(place, flat, "o", color=colour, label=label, markersize=3)
        if interval is not None:
            ax.vlines(place, *(side[index].reshape(-1) for side in interval), color=colour, linewidth=1.0)
    if values[0].size == 1:
        ax.set_xticks([])
    else:
        ax.set_xlabel("entry")
