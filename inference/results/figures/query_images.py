"""Mean images as observed and under an intervention, and what it changes, on scales that all panels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from inference.queries.answer import ModalityAnswer, QueryAnswer
from inference.results.figures.cell_images import panel_size, picture_of
from inference.results.figures.style import Space, panels
from inference.results.text import shorten

__all__ = ["draw_query_images"]

_MOST_OTHERS = 2
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
    return figure, _note(found, (low, high), largest if changes else None)


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
        for key in [key for key in found.mean if key not in ("observed", "seen", "do")][:_MOST_OTHERS]:
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
    unit = "probability" if found.is_categorical else found.unit
    bars = [] if _is_colour(found) else [(axes[n_columns - 1], "gray", limits, unit)]
    if largest is not None:
        bars.append((axes[-1], _CHANGE, (-largest, largest), f"change ({unit})" if unit else "change"))
    for ax, colours, (low, high), label in bars:
        scale = ScalarMappable(Normalize(low, high), colours)
        bar = figure.colorbar(scale, cax=ax.inset_axes((1.06, 0.0, 0.06, 1.0)), label=label)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=6)


def _note(found: ModalityAnswer, limits: tuple[float, float], largest: float | None) -> str:
    parts = [f"Means from {limits[0]:.3g} to {limits[1]:.3g} run from dark to bright, alike in all panels."]
    if largest is not None and _is_colour(found):
        parts.append(f"Differences: grey is no change, the largest is {largest:.3g}.")
    elif largest is not None:
        parts.append("Differences: white is no change.")
    return " ".join(parts)
