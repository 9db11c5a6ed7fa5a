"""The cells as every figure shows them: the same names, colours and counts."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np

from inference.results.arrays import FitArrays
from inference.results.figures.node_headings import nodes_heading
from inference.results.figures.style import category_colours
from inference.results.text import cell_names

__all__ = ["Cells", "cells_of"]

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
