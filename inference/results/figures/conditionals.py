"""Conditional probability of each node given each other node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import FitArrays
from inference.results.figures.node_headings import NOT_IDENTIFIED, node_heading, unnamed_note
from inference.results.figures.style import Space, add_note, panels
from inference.results.text import shorten

__all__ = ["draw_conditionals", "pairwise_conditional"]

_SIDE = 0.34
_GAP = 0.3
_MOST_NUMBERED = 30
_NAME_WIDTH = 14
_CHARACTER = 0.065
_PAGE_WIDTH = 7.0
_NOTE_WIDTH = 64


def pairwise_conditional(log_joint: np.ndarray, node: int, given: int | None) -> np.ndarray:
    r"""Distribution of a node, on its own or given another.

    $$p(N_\ell = c \mid N_k = d) = \frac{\sum_{N_\ell = c, N_k = d} p(N)}{\sum_{N_k = d} p(N)}$$

    Args:
        log_joint: log p(N), `[C_1, ..., C_L]`, up to a constant.
        node: Index l of the node.
        given: Index k of the node that is conditioned on; None for the marginal.

    Returns:
        `[C_k, C_l]`, rows sum to one; `[1, C_l]` for the marginal. NaN where p(N_k = d) is zero.
    """
    joint = np.exp(log_joint - log_joint.max())
    others = tuple(axis for axis in range(joint.ndim) if axis not in (node, given))
    table = joint.sum(axis=others)
    table = table[None, :] if given is None else table.T if node < given else table
    total = table.sum(axis=1, keepdims=True)
    return np.divide(table, total, out=np.full_like(table, np.nan), where=total > 0)


def draw_conditionals(fit: FitArrays) -> Figure:
    """A block per pair of nodes, the conditioning node in the rows; the marginals above."""
    log_joint = fit.graph.log_joint
    starts = _starts(log_joint.shape)
    width = starts[-1] + log_joint.shape[-1]
    height = 1.0 if log_joint.ndim == 1 else 1 + _GAP + width
    scale = _SIDE if sum(log_joint.shape) <= _MOST_NUMBERED else max(0.1, _PAGE_WIDTH / width)
    figure, (ax,) = panels(1, size=(scale * width, scale * height), columns=1, space=Space(below=0.05))
    for node, x in enumerate(starts):
        _draw_block(ax, pairwise_conditional(log_joint, node, None), x, 0.0, with_numbers=scale == _SIDE)
        for given, y in enumerate(1 + _GAP + starts):
            if given != node:
                _draw_block(ax, pairwise_conditional(log_joint, node, given), x, y, with_numbers=scale == _SIDE)
    ax.set(xlim=(0, width), ylim=(height, 0))
    _label(ax, fit, starts, scale)
    if log_joint.ndim > 1:
        add_note(
            figure,
            "Each row of a block: the distribution of the node above, given the outcome on the left.",
            unnamed_note(fit.identifiability),
            width=_NOTE_WIDTH,
        )
    return figure


def _starts(counts: Sequence[int]) -> np.ndarray:
    """Where the block of each node begins, with a gap between blocks."""
    return np.concatenate([[0.0], np.cumsum(np.array(counts[:-1]) + _GAP)])


def _draw_block(ax: Axes, table: np.ndarray, x: float, y: float, *, with_numbers: bool) -> None:
    n_rows, n_columns = table.shape
    extent = (x, x + n_columns, y + n_rows, y)
    ax.imshow(np.ma.masked_invalid(table), cmap="Blues", vmin=0.0, vmax=1.0, extent=extent, aspect="auto")
    for i, j in np.ndindex(n_rows, n_columns) if with_numbers else ():
        text = f"{table[i, j]:.2f}" if np.isfinite(table[i, j]) else "-"
        colour = "white" if table[i, j] > 0.6 else "black"
        ax.text(x + j + 0.5, y + i + 0.5, text, ha="center", va="center", fontsize=7, color=colour)


def _label(ax: Axes, fit: FitArrays, starts: np.ndarray, scale: float) -> None:
    """Outcomes beside each row and column, and the nodes that they belong to beyond them."""
    outcomes = [[shorten(name, _NAME_WIDTH) for name in names] for names in fit.graph.outcome_names]
    names = [name for group in outcomes for name in group]
    longest = max(len(name) for name in names)
    upright = longest * _CHARACTER > scale
    middles = np.concatenate([x + np.arange(len(group)) + 0.5 for x, group in zip(starts, outcomes, strict=True)])
    rows = [] if len(starts) == 1 else names
    ax.xaxis.tick_top()
    ax.set_xticks(middles, labels=names, rotation=90 if upright else 0)
    ax.set_yticks([0.5, *(1 + _GAP + middles[: len(rows)])], labels=["marginal", *rows])
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
    above = 0.12 + (_CHARACTER * longest if upright else 0.12)
    for x, group, node in zip(starts, outcomes, fit.graph.node_names, strict=True):
        middle, width = x + len(group) / 2, max(5, int(len(group) * scale / 0.075))
        ax.text(middle, -above / scale, _stacked(node, fit, width), ha="center", va="bottom", fontsize=8)
        if rows:
            left = (0.2 + _CHARACTER * longest) / scale
            name = f"given {node_heading(node, fit.identifiability, _NAME_WIDTH)}"
            ax.text(-left, middle + 1 + _GAP, name, ha="right", va="center", fontsize=8)


def _stacked(node: str, fit: FitArrays, width: int) -> str:
    """The name of a node with the mark below it, for a narrow column."""
    heading = node_heading(node, fit.identifiability, width)
    name = heading.removesuffix(NOT_IDENTIFIED)
    return name if name == heading else "\n".join([name, *NOT_IDENTIFIED.split()])
