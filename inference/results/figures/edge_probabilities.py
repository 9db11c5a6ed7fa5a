"""Heat map of the probabilities of edges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.figures.style import Space, add_heading, add_note, figure_style, note_width, panels, save_figure
from inference.results.files import make_folder
from inference.results.posterior_findings import short_pairs
from inference.results.text import printable, shorten

__all__ = ["draw_edge_probabilities", "write_posterior_figures"]

_NAME_WIDTH = 16
_CELL = 0.42
_MOST_NUMBERED = 16
_DARK = 0.55


def write_posterior_figures(found: Mapping[str, Any], folder: Path | str) -> list[Path]:
    """Write `edge_probabilities.png`.

    Args:
        found: A posterior, as `inference.graph`'s JSON has it.
        folder: Where it goes; made where it does not exist.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    place = make_folder(folder)
    with figure_style():
        return [save_figure(draw_edge_probabilities(found), place / "edge_probabilities.png")]


def draw_edge_probabilities(found: Mapping[str, Any]) -> Figure:
    """p(row → column) of every ordered pair: how sure an edge is, whichever way round, and how sure its direction.

    Args:
        found: A posterior, as `inference.graph`'s JSON has it.
    """
    names = [shorten(printable(name), _NAME_WIDTH) for name in found["nodes"]]
    size = max(2.2, _CELL * len(names))
    wide = 0.15 + 0.07 * max(map(len, names))
    space = Space(left=wide, below=wide, above=0.3)
    figure, axes = panels(2, size=(size, size), columns=2, space=space)
    short = short_pairs(found)
    hidden = np.array([[{a, b} in short or a == b for b in found["nodes"]] for a in found["nodes"]])
    for ax, kind, title in zip(axes, ("edge", "compelled"), ("row → column", "so directed in its class"), strict=True):
        _heat_map(ax, np.where(hidden, np.nan, np.array(found[f"{kind}_probability"], dtype=float)), names)
        ax.set_title(title)
    axes[1].set_yticklabels([])
    add_heading(figure, "Probability of edges")
    add_note(figure, *_notes(found), width=note_width(figure))
    return figure


def _heat_map(ax: Axes, shown: np.ndarray, names: list[str]) -> None:
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    if len(names) <= _MOST_NUMBERED:
        for i, j in np.argwhere(np.isfinite(shown)):
            colour = "white" if shown[i, j] > _DARK else "black"
            ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=6.5, color=colour)


def _notes(found: Mapping[str, Any]) -> list[str]:
    size = found["equivalent_sample_size"]
    score = "BIC" if size is None else f"BDeu, equivalent sample size {size:g}"
    notes = [
        f"Posterior over graphs ({score}) from {found['n_samples']} samples. Rows are causes, columns effects; the sum "
        "of both directions is the probability that two nodes are joined. Right: the part that is not the prior's.",
        "Assumed: no hidden common cause, no selection"
        + ("." if "levels" in found else ", and that the clusters are what their names say."),
    ]
    if short_pairs(found):
        notes.append("Blank: too few samples for the levels of the two.")
    if not found.get("is_named", True):
        notes.append("Clusters are unnamed: this is one of the labellings that fit equally well.")
    return notes
