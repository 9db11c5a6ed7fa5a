"""What is missing where: samples along the page, a row for each kind of measurement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from inference.results.figures.style import ACCENT, FAINT, WARNING, Space, add_note, figure_style, panels, save_figure
from inference.results.text import shorten

__all__ = ["draw_missing", "write_missing"]

_WIDTH = 6.0
_ROW = 0.32
_MOST_BARS = 300
_MOST_NAMED = 40
_MOST_ROWS = 40
_NAME_WIDTH = 22


def write_missing(
    path: Path, names: Sequence[str], observed: np.ndarray, sample_names: Sequence[str] | None = None
) -> Path:
    """Draw and write; the arguments are those of `draw_missing`.

    Raises:
        OutputError: The file can't be written.
    """
    with figure_style():
        return save_figure(draw_missing(names, observed, sample_names), path)


def draw_missing(names: Sequence[str], observed: np.ndarray, sample_names: Sequence[str] | None = None) -> Figure:
    """A column for each sample, or for neighbours where there are more than 300, in a row for each modality.

    The blue part of a column is the share of elements that are there, the grey one what single samples lack of a
    measurement, the orange one the share of samples without any: nothing depends on telling shades of a colour apart.

    Args:
        names: Names of the modalities.
        observed: Share of each measurement's elements that is there, `[sample, modality]`, or whether it is (bool).
        sample_names: Names of the samples, shown up to 40; without them, they are numbered from 1.
    """
    shares = np.asarray(observed, dtype=float)
    shown = _most_missing(shares)
    figure, (ax,) = panels(1, size=(_WIDTH, _ROW * len(shown)), columns=1, space=Space(left=1.4, below=0.4, above=0.2))
    edges = _edges(len(shares))
    for row, modality in enumerate(shown):
        _draw_row(ax, row, edges, *_parts(shares[:, modality], edges))
    _label(ax, [names[i] for i in shown], shares[:, shown], sample_names)
    add_note(figure, *_notes(len(shares), edges, len(names) - len(shown)))
    return figure


def _most_missing(shares: np.ndarray) -> np.ndarray:
    """All modalities in their order; of too many, those that lack most."""
    order = np.argsort(shares.mean(axis=0), kind="stable")
    return np.sort(order[:_MOST_ROWS])


def _edges(n_samples: int) -> np.ndarray:
    """Where bars begin and end: each is one sample, or as many neighbours, give or take one."""
    return np.linspace(0, n_samples, min(n_samples, _MOST_BARS) + 1).round().astype(int)


def _parts(shares: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of elements that are there, and of samples that have any, `[bar]` each."""
    there, present = (np.add.reduceat(values, edges[:-1]) / np.diff(edges) for values in (shares, 1.0 * (shares > 0)))
    return there, present


def _draw_row(ax: Axes, row: int, edges: np.ndarray, there: np.ndarray, present: np.ndarray) -> None:
    """Three layers from the foot of the row: what is there, what is lacking in part, what is absent."""
    foot, height = row + 0.92, 0.84
    layers = [np.zeros_like(there), there, present, np.ones_like(there)]
    for begin, end, colour in zip(layers, layers[1:], (ACCENT, FAINT, WARNING), strict=False):
        bottom, top = foot - height * begin, foot - height * end
        if len(there) <= _MOST_NAMED:
            ax.bar((edges[:-1] + edges[1:]) / 2, top - bottom, 0.88, bottom, color=colour, linewidth=0)
        else:
            ax.stairs(top, edges, baseline=bottom, fill=True, color=colour, linewidth=0, antialiased=False)


def _label(ax: Axes, names: Sequence[str], shares: np.ndarray, sample_names: Sequence[str] | None) -> None:
    n_samples = len(shares)
    ax.set(xlim=(0, n_samples), ylim=(len(names), 0))
    ax.set_yticks(np.arange(len(names)) + 0.5, labels=[shorten(name, _NAME_WIDTH) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    _label_samples(ax, n_samples, sample_names)
    for row, count in enumerate((shares > 0).sum(axis=0)):
        text = f"{count} of {n_samples}"
        ax.text(1.01, row + 0.5, text, transform=ax.get_yaxis_transform(), fontsize=7, va="center")
    handles = [Patch(color=colour) for colour in (ACCENT, FAINT, WARNING)]
    words = ["there", "elements missing", "sample lacks it"]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.5, "ncol": 3}
    ax.legend(handles, words, handlelength=1.0, handleheight=1.0, columnspacing=1.5, **place)


def _label_samples(ax: Axes, n_samples: int, sample_names: Sequence[str] | None) -> None:
    if sample_names is None or n_samples > _MOST_NAMED:
        ax.set_xlabel("sample, in the order of the file")
        return
    labels = [shorten(name, _NAME_WIDTH) for name in sample_names]
    upright = max(map(len, labels)) * 0.07 > _WIDTH / n_samples
    ax.set_xticks(np.arange(n_samples) + 0.5, labels=labels, rotation=90 if upright else 0)
    ax.tick_params(axis="x", length=0)


def _notes(n_samples: int, edges: np.ndarray, n_hidden: int) -> list[str]:
    notes = []
    if len(edges) <= n_samples:
        fewest, most = np.diff(edges).min(), np.diff(edges).max()
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        notes.append(f"Each column stands for {count} samples: its colours are their shares.")
    if n_hidden:
        notes.append(f"{n_hidden} more modalities, which lack less, are not shown.")
    return notes
