"""Mean curves and vectors as observed and under an intervention, and beside them what it changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from inference.queries.answer import ModalityAnswer, QueryAnswer
from inference.queries.estimates import Estimate
from inference.results.figures.style import ACCENT, GREY, Space, category_colours, panels
from inference.results.text import shorten

__all__ = ["draw_query_lines"]

_MOST_DOTS = 12
_MOST_OTHERS = 4
_LABEL_WIDTH = 32
_OBSERVED = "#8a8a8a"


def draw_query_lines(name: str, found: ModalityAnswer, answer: QueryAnswer) -> tuple[Figure, str]:
    """Left the means, right the differences; few entries as dots with bars, else lines with bands.

    Args:
        name: The modality.
        found: Its answer.
        answer: All of the answer.
    """
    means = _labelled(found, answer)
    panels_of = [(means, _value_label(name, found))]
    if found.difference:
        shown = dict(list(found.difference.items())[: 1 + _MOST_OTHERS])
        panels_of.append((_as_minus(shown), f"change{_unit(found)}"))
    n_entries = found.mean["observed"].low.size
    is_scalar, is_dots = n_entries == 1, found.kind != "curve" and n_entries <= _MOST_DOTS
    height = 0.3 + 0.22 * len(means) if is_scalar else 1.8
    space = Space(left=1.5 if is_scalar else 0.8, below=0.5, above=0.2, right=0.1 if is_scalar else 1.35)
    figure, axes = panels(len(panels_of), size=(2.6, height), columns=2, space=space)
    for ax, (estimates, label), is_change in zip(axes, panels_of, (False, True), strict=False):
        colours = _colours(estimates, is_change)
        if is_scalar:
            _draw_rows(ax, estimates, colours, label, is_change)
        else:
            (_draw_dots if is_dots else _draw_bands)(ax, found, estimates, colours, is_change)
            _label(ax, found, label)
        if is_change:
            ax.set_title(shorten(answer.labels["do"], _LABEL_WIDTH))
    return figure, _note(is_scalar or is_dots)


def _labelled(found: ModalityAnswer, answer: QueryAnswer) -> dict[str, Estimate]:
    others = [key for key in found.mean if key not in ("observed", "seen", "do")][:_MOST_OTHERS]
    keys = [key for key in ("observed", "do") if key in found.mean] + others
    return {answer.labels[key]: found.mean[key] for key in keys}


def _as_minus(differences: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """`− observed`: what is subtracted from the intervention."""
    return {f"− {what.partition(' - ')[2]}": difference for what, difference in differences.items()}


def _colours(estimates: Mapping[str, Estimate], is_change: bool) -> list[str]:
    """What is observed is grey, the intervention blue; differences have the colour of what is subtracted."""
    others = [to_hex(colour) for colour in category_colours(8)[1:]]
    first = [_OBSERVED] if is_change else [_OBSERVED, ACCENT]
    return (first + others)[: len(estimates)]


def _draw_rows(ax: Axes, estimates: Mapping[str, Estimate], colours: list[str], label: str, is_change: bool) -> None:
    """One number: a row per scenario."""
    for row, (found, colour) in enumerate(zip(estimates.values(), colours, strict=True)):
        low, high, lower, upper = (float(part.reshape(-1)[0]) for part in found[:4])
        ax.plot([lower, upper], [row, row], color=colour, linewidth=1.0, solid_capstyle="butt")
        ax.plot([low, high], [row, row], color=colour, linewidth=4.0, solid_capstyle="butt", alpha=0.6)
        ax.plot([low, high], [row, row], "o", color=colour, markersize=4)
    ax.set_yticks(range(len(estimates)), labels=[shorten(name, _LABEL_WIDTH) for name in estimates])
    ax.set_ylim(len(estimates) - 0.5, -0.5)
    ax.set_xlabel(label)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5))
    if is_change:
        ax.axvline(0.0, color=GREY, linewidth=0.6, linestyle="--", zorder=0)


def _draw_dots(
    ax: Axes, found: ModalityAnswer, estimates: Mapping[str, Estimate], colours: list[str], is_change: bool
) -> None:
    """A dot per entry, scenarios side by side."""
    width = 0.6 / len(estimates)
    for index, ((name, one), colour) in enumerate(zip(estimates.items(), colours, strict=True)):
        low, high, lower, upper = (part.reshape(-1) for part in one[:4])
        places = np.arange(len(low)) + (index - (len(estimates) - 1) / 2) * width
        ax.vlines(places, lower, upper, color=colour, linewidth=1.0)
        ax.vlines(places, low, high, color=colour, linewidth=3.5, alpha=0.6)
        ax.plot(places, (low + high) / 2, "o", color=colour, markersize=3, label=shorten(name, _LABEL_WIDTH))
    ax.set_xticks(range(next(iter(estimates.values())).low.size))
    _finish(ax, is_change)


def _draw_bands(
    ax: Axes, found: ModalityAnswer, estimates: Mapping[str, Estimate], colours: list[str], is_change: bool
) -> None:
    """Lines over positions; the wide band is the 90 % interval, the narrow one runs over the graphs."""
    places = _positions(found)
    for (name, one), colour in zip(estimates.items(), colours, strict=True):
        low, high, lower, upper = (part.reshape(-1) for part in one[:4])
        ax.fill_between(places, lower, upper, color=colour, alpha=0.18, linewidth=0)
        ax.fill_between(places, low, high, color=colour, alpha=0.35, linewidth=0)
        ax.plot(places, low, color=colour, label=shorten(name, _LABEL_WIDTH))
        if not one.is_identified.all():
            ax.plot(places, high, color=colour)
    ax.set_xlim(float(places.min()), float(places.max()))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=4))
    _finish(ax, is_change)


def _finish(ax: Axes, is_change: bool) -> None:
    if is_change:
        ax.axhline(0.0, color=GREY, linewidth=0.6, linestyle="--", zorder=0)
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))


def _positions(found: ModalityAnswer) -> np.ndarray:
    size = found.mean["observed"].low.size
    return np.arange(size, dtype=float) if found.axis is None or len(found.axis.values) != size else found.axis.values


def _label(ax: Axes, found: ModalityAnswer, label: str) -> None:
    ax.set_ylabel(label)
    if found.kind == "curve" and found.axis is not None:
        unit = f" ({shorten(found.axis.unit, 16)})" if found.axis.unit else ""
        ax.set_xlabel(shorten(found.axis.name, _LABEL_WIDTH) + unit)
    else:
        ax.set_xlabel("entry, category by category" if found.is_categorical else "entry")


def _unit(found: ModalityAnswer) -> str:
    unit = "probability" if found.is_categorical else found.unit
    return f" ({shorten(unit, 16)})" if unit else ""


def _value_label(name: str, found: ModalityAnswer) -> str:
    return shorten(name, _LABEL_WIDTH) + _unit(found)


def _note(is_bars: bool) -> str:
    wide, narrow = ("Thin bars", "thick bars") if is_bars else ("Light bands", "darker bands between two lines")
    return f"{wide}: 90 % intervals; {narrow}: over the graphs, where they do not agree."
