"""How much of every modality's variance every node explains."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from inference.results.arrays import FitArrays
from inference.results.figures.heat_map import CELL, NAME_WIDTH, draw_heat_map, label_space
from inference.results.figures.node_headings import node_headings, unnamed_note
from inference.results.figures.style import Space, add_note, note_width, panels

__all__ = ["draw_explained"]

_ALL = "all cells"
_WIDE = 1.6


def draw_explained(fit: FitArrays) -> Figure | None:
    """Nodes in rows, modalities in columns; below them what all cells explain together. None without the numbers."""
    if not fit.variance_explained:
        return None
    modalities = list(fit.variance_explained)
    found = [fit.variance_explained[name] for name in modalities]
    table = np.array([[*one.nodes, one.cells] for one in found]).T
    random = np.array([[*one.random, np.nan] for one in found]).T
    rows = [*node_headings(fit.graph.node_names, fit.identifiability, NAME_WIDTH), _ALL]
    size = (_WIDE * CELL[0] * max(len(modalities), 2), CELL[1] * len(rows))
    space = Space(left=0.9, below=0.1, above=0.15 + label_space(modalities))
    figure, (ax,) = panels(1, size=size, columns=1, space=space)
    texts = [[_text(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(table, random, strict=True)]
    draw_heat_map(ax, table, rows, modalities, texts)
    ax.axhline(len(rows) - 1.5, color="white", linewidth=3)
    add_note(
        figure,
        "Share of the variance of each modality between the outcomes of a node, on the scale of the model; in brackets "
        "that of the same clusters named at random. Nodes that depend on each other share what they explain; "
        "the last row is the ceiling of all.",
        unnamed_note(fit.identifiability),
        width=note_width(figure),
    )
    return figure


def _text(value: float, at_random: float) -> str:
    share = f"{100 * value:.0f} %"
    return f"{share} ({100 * at_random:.0f} %)" if np.isfinite(at_random) else share
