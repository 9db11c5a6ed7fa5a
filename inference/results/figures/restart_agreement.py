"""How far several starts agree: the adjusted Rand index of every pair, and the entropy of each."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.clusters.choice import UNCLEAR_ENTROPY
from inference.results.figures.style import ACCENT, FAINT, GREY, WARNING, Space, add_note, panels
from inference.results.restart_arrays import RestartArrays

__all__ = ["draw_restart_agreement"]

_ROW = 0.3
_LEAST, _MOST = 1.5, 6.0
_MOST_WRITTEN = 24
_LOWEST = 0.5
_MOST_NAMED = 40


def draw_restart_agreement(restarts: RestartArrays) -> Figure:
    """A matrix of starts by starts, the clearest first, and their entropies beside it.

    Args:
        restarts: The starts; those that diverged are left out.
    """
    order = _order(restarts)
    side = float(np.clip(_ROW * len(order), _LEAST, _MOST))
    figure, (matrix, bars) = panels(2, size=(side, side), columns=2, space=Space(left=0.5, below=0.45, above=0.3))
    _draw_matrix(matrix, restarts.ari[np.ix_(order, order)])
    _draw_bars(bars, restarts, order)
    _label(matrix, restarts, order)
    add_note(figure, *_notes(restarts, len(order)))
    return figure


def _order(restarts: RestartArrays) -> np.ndarray:
    """Starts that did not diverge; those that collapsed come last, whatever their entropy."""
    order = np.lexsort((restarts.entropy, restarts.status != "ok"))
    return order[np.isfinite(restarts.entropy[order])]


def _draw_matrix(ax: Axes, ari: np.ndarray) -> None:
    ax.imshow(ari, vmin=_LOWEST, vmax=1.0, cmap="Blues", aspect="auto")
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_title("adjusted Rand index")
    if len(ari) <= _MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(ari):
            shade = "white" if value > 0.75 else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=shade)


def _draw_bars(ax: Axes, restarts: RestartArrays, order: np.ndarray) -> None:
    kept = [restarts.chosen == start for start in order]
    ok = restarts.status[order] == "ok"
    colours = [ACCENT if k else FAINT if fine else WARNING for k, fine in zip(kept, ok, strict=True)]
    entropy = restarts.entropy[order]
    ax.barh(np.arange(len(order)), entropy, height=0.7, color=colours)
    ax.set(ylim=(len(order) - 0.5, -0.5), xlim=(0, max(1.15 * entropy.max(), 1.15 * UNCLEAR_ENTROPY)))
    ax.axvline(UNCLEAR_ENTROPY, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_title("entropy of q(N|X)")
    ax.set_xlabel("nats per sample")
    ax.set_yticks([])


def _label(ax: Axes, restarts: RestartArrays, order: np.ndarray) -> None:
    names = [f"{start} (kept)" if start == restarts.chosen else str(start) for start in order]
    if len(order) > _MOST_NAMED:
        ax.set(xticks=[], yticks=[])
        return
    ax.set_yticks(range(len(order)), labels=names)
    ax.set_xticks(range(len(order)), labels=[str(start) for start in order])
    ax.set_xlabel("start")
    ax.tick_params(length=0)


def _notes(restarts: RestartArrays, n_shown: int) -> list[str]:
    hidden = len(restarts.entropy) - n_shown
    notes = [
        "White: an index of 0.5 or less. Blue bar: the start that is kept; orange: one that collapsed. Dotted: "
        f"{UNCLEAR_ENTROPY} nats, above which clusters are not clean."
    ]
    return notes + ([f"{hidden} that diverged {'is' if hidden == 1 else 'are'} not shown."] if hidden else [])
