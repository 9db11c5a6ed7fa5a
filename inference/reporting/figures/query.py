"""What an intervention does to every modality, beside what is observed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from causalpima.inference.analyses.answer import ModalityAnswer, QueryAnswer
from causalpima.inference.analyses.query_sampling import INTERVAL, Estimate
from causalpima.inference.analyses.scenarios import drawn_graph
from causalpima.inference.findings.cell_figures import panel_size, picture_of
from causalpima.inference.findings.drawing import (
    ACCENT,
    GREY,
    Space,
    add_heading,
    add_note,
    category_colours,
    figure_style,
    file_names,
    panels,
    save_figure,
)
from causalpima.inference.store.files import make_folder
from causalpima.inference.store.text import format_value, printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_query",
    "draw_query_images",
    "draw_query_lines",
    "write_query_figures",
]


# Mean images as observed and under an intervention, and what it changes, on scales that all panels share.


_MOST_OTHER_IMAGES = 2
_SIDE = 1.15
_CHANGE = "PuOr"
_TITLE_WIDTH = 26


class _Column(NamedTuple):
    """A mean, and below it a difference."""

    title: str
    mean: np.ndarray
    change_title: str = ""
    change: np.ndarray | None = None


def draw_query_images(name: str, found: ModalityAnswer, answer: QueryAnswer) -> tuple[Figure, str]:
    """Above the means, one per answer of the graphs; below them the differences to what is observed, or from other do.

    Args:
        name: The modality.
        found: Its answer.
        answer: All of the answer.
    """
    columns = _columns(found, answer)
    low, high = _limits([column.mean for column in columns])
    changes = [column.change for column in columns if column.change is not None]
    largest = max((float(np.nanmax(np.abs(change))) for change in changes), default=0.0) or 1.0
    rows = 2 if changes else 1
    height, width = _picture(columns[0].mean, found).shape[:2]
    size = panel_size(height, width, side=_SIDE)
    space = Space(left=0.22, below=0.06, above=0.34)
    figure, axes = panels(rows * len(columns), size=size, columns=len(columns), space=space)
    for place, column in enumerate(columns):
        picture = _picture((column.mean - low) / (high - low), found)
        _show(axes[place], column.title, picture, "gray", (0.0, 1.0))
        if rows == 2:
            _show_change(axes[len(columns) + place], column, found, largest)
    _add_bars(figure, axes, len(columns), found, (low, high), largest if changes and not _is_colour(found) else None)
    return figure, _image_note(found, (low, high), largest if changes else None)


def _columns(found: ModalityAnswer, answer: QueryAnswer) -> list[_Column]:
    observed = (found.mean["observed"].low + found.mean["observed"].high) / 2
    columns = [_Column(answer.labels["observed"], observed)]
    if "do" not in answer.labels:
        return columns
    label = answer.labels["do"]
    for number, which in _shown_answers(found.answers - observed).items():
        mean = found.answers[number]
        columns.append(_Column(f"{label}{which}", mean, f"{label}\n− observed", mean - observed))
    if len(found.answers) == 1:
        for key in [key for key in found.mean if key not in ("observed", "seen", "do")][:_MOST_OTHER_IMAGES]:
            other = (found.mean[key].low + found.mean[key].high) / 2
            columns.append(_Column(key, other, f"{label}\n− {key}", found.answers[0] - other))
    return columns


def _shown_answers(changes: np.ndarray) -> dict[int, str]:
    """Numbers of the answers that are shown and their titles: the likeliest, and the ends of what is not identified."""
    size = np.square(np.nan_to_num(changes)).reshape(len(changes), -1).sum(axis=1)
    if len(changes) == 1:
        return {0: ""}
    shown = {int(size.argmin()): "smallest change", int(size.argmax()): "largest change"}
    shown[0] = f"likeliest, {shown[0].split()[0]}" if 0 in shown else "likeliest"
    return {number: f"\n{shown[number]}" for number in sorted(shown)}


def _limits(means: list[np.ndarray]) -> tuple[float, float]:
    """Images in [0, 1] or [0, 255] keep that range, others have their own."""
    values = np.concatenate([mean.reshape(-1) for mean in means])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    usual = [(0.0, top) for top in (1.0, 255.0) if low >= 0.0 and top / 2 < high <= top]
    return usual[0] if usual else (low, high if high > low else low + 1.0)


def _is_colour(found: ModalityAnswer) -> bool:
    return not found.is_categorical and found.answers.shape[-1] == 3


def _picture(values: np.ndarray, found: ModalityAnswer) -> np.ndarray:
    """Of categories, the probability of each side by side."""
    if not found.is_categorical:
        return picture_of(values)
    flat = values.reshape(*values.shape[:2], -1)
    return np.concatenate([flat[..., index] for index in range(flat.shape[-1])], axis=1)


def _show(ax: Axes, title: str, picture: np.ndarray, colours: str, limits: tuple[float, float]) -> None:
    ax.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    lines = [shorten(line, _TITLE_WIDTH) for line in title.split("\n")]
    ax.set_title("\n".join(lines), fontsize=7, pad=2)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _show_change(ax: Axes, column: _Column, found: ModalityAnswer, largest: float) -> None:
    if column.change is None:
        ax.set_visible(False)
    elif _is_colour(found):
        _show(ax, column.change_title, picture_of(0.5 + 0.5 * column.change / largest), "gray", (0.0, 1.0))
    else:
        _show(ax, column.change_title, _picture(column.change, found), _CHANGE, (-largest, largest))


def _add_bars(
    figure: Figure,
    axes: list[Axes],
    n_columns: int,
    found: ModalityAnswer,
    limits: tuple[float, float],
    largest: float | None,
) -> None:
    """Colour scales at the right of each row, with the unit."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    unit = "probability" if found.is_categorical else found.unit
    bars = [] if _is_colour(found) else [(axes[n_columns - 1], "gray", limits, unit)]
    if largest is not None:
        bars.append((axes[-1], _CHANGE, (-largest, largest), f"change ({unit})" if unit else "change"))
    for ax, colours, (low, high), label in bars:
        scale = ScalarMappable(Normalize(low, high), colours)
        bar = figure.colorbar(scale, cax=ax.inset_axes((1.06, 0.0, 0.06, 1.0)), label=label)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=6)


def _image_note(found: ModalityAnswer, limits: tuple[float, float], largest: float | None) -> str:
    low, high = (format_value(limit, 3, limits[1] - limits[0]) for limit in limits)
    parts = [f"Means from {low} to {high} run from dark to bright, alike in all panels."]
    if largest is not None and _is_colour(found):
        parts.append(f"Differences: grey is no change, the largest is {largest:.3g}.")
    elif largest is not None:
        parts.append("Differences: white is no change.")
    return " ".join(parts)


# Mean curves and vectors as observed and under an intervention, and beside them what it changes.


_MOST_DOTS = 12
_MOST_OTHER_LINES = 4
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
        shown = dict(list(found.difference.items())[: 1 + _MOST_OTHER_LINES])
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
    return figure, _line_note(is_scalar or is_dots)


def _labelled(found: ModalityAnswer, answer: QueryAnswer) -> dict[str, Estimate]:
    others = [key for key in found.mean if key not in ("observed", "seen", "do")][:_MOST_OTHER_LINES]
    keys = [key for key in ("observed", "do") if key in found.mean] + others
    return {answer.labels[key]: found.mean[key] for key in keys}


def _as_minus(differences: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """`− observed`: what is subtracted from the intervention."""
    return {f"− {what.partition(' - ')[2]}": difference for what, difference in differences.items()}


def _colours(estimates: Mapping[str, Estimate], is_change: bool) -> list[str]:
    """What is observed is grey, the intervention blue; differences have the colour of what is subtracted."""
    from matplotlib.colors import to_hex

    others = [to_hex(colour) for colour in category_colours(8)[1:]]
    first = [_OBSERVED] if is_change else [_OBSERVED, ACCENT]
    return (first + others)[: len(estimates)]


def _draw_rows(ax: Axes, estimates: Mapping[str, Estimate], colours: list[str], label: str, is_change: bool) -> None:
    """One number: a row per scenario."""
    from matplotlib.ticker import MaxNLocator

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
    from matplotlib.ticker import MaxNLocator

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


def _line_note(is_bars: bool) -> str:
    wide, narrow = ("Thin bars", "thick bars") if is_bars else ("Light bands", "darker bands between two lines")
    return f"{wide}: 90 % intervals; {narrow}: over the graphs, where they do not agree."


_MOST_LISTED = 3


def write_query_figures(answer: QueryAnswer, folder: Path | str) -> list[Path]:
    """Write `query_NAME.png` for every modality.

    Args:
        answer: The answer.
        folder: Where the files go; made where it does not exist.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    place = make_folder(folder)
    with figure_style():
        return [
            save_figure(draw_query(answer, name), place / f"query_{file}.png")
            for name, file in file_names(answer.modalities).items()
        ]


def draw_query(answer: QueryAnswer, name: str) -> Figure:
    """Means as they are observed and as they would be, and their differences.

    Args:
        answer: The answer.
        name: The modality.
    """
    found = answer.modalities[name]
    draw = draw_query_images if found.kind == "image" else draw_query_lines
    figure, note = draw(name, found, answer)
    given = ", ".join(f"{printable(node)}={printable(outcome)}" for node, outcome in answer.given.items())
    add_heading(figure, f"{shorten(name, 40)}: mean{_under(answer)}{f', given {given}' if given else ''}")
    add_note(figure, note, _which(answer), *_assumptions(answer))
    return figure


def _under(answer: QueryAnswer) -> str:
    return f" under {answer.labels['do']} and as observed" if "do" in answer.labels else " as observed"


def _which(answer: QueryAnswer) -> str:
    """Which graphs give which answer, where they do not agree."""
    if "do" not in answer.labels or len(answer.answers) == 1:
        return ""
    names, parts = tuple(answer.outcomes), []
    for number, graphs in enumerate(answer.answers[:_MOST_LISTED], start=1):
        weight, drawn = answer.graphs.weights[list(graphs)].sum(), drawn_graph(answer.graphs.dags[graphs[0]], names)
        others = f" and {len(graphs) - 1} more" if len(graphs) > 1 else ""
        parts.append(f"{number} (weight {weight:.2f}): {drawn}{others}")
    counts = f"{len(answer.graphs.dags)} graphs give {len(answer.answers)} answers"
    more = len(answer.answers) - _MOST_LISTED
    rest = f"; and {more} more" if more > 0 else ""
    return f"Not identified: {counts}. {'; '.join(parts)}{rest}."


def _assumptions(answer: QueryAnswer) -> list[str]:
    if "do" not in answer.labels:
        return [f"Rests on {answer.assumptions[0]}."]
    return [
        f"Assumed: no hidden common cause, no selection; {answer.assumptions[0]}; {answer.graphs.sentence}.",
        f"Intervals: {INTERVAL:.0%}, for the sampling of p(N); the mean of a cell counts as known.",
    ]
