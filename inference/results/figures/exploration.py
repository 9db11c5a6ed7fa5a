"""How many cells the data support: agreement of read-outs, entropy, held-out likelihood."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from inference.clusters.stability import STABLE
from inference.results.exploration import Exploration
from inference.results.figures.style import ACCENT, GREY, WARNING, Space, add_note, figure_style, panels, save_figure

__all__ = ["draw_exploration", "write_exploration"]

_PANEL = (2.2, 1.5)
_SPACE = Space(left=0.55, below=0.45, above=0.3)
_COLUMNS = 3


def write_exploration(found: Exploration, path: Path) -> Path:
    """Write the figure as PNG; returns the path."""
    with figure_style():
        return save_figure(draw_exploration(found), path)


def draw_exploration(found: Exploration) -> Figure:
    """Three panels over the number of cells: agreement, entropy, and held-out log-likelihood where there is one."""
    has_held_out = any(record.held_out is not None for record in found.records)
    figure, axes = panels(3 if has_held_out else 2, size=_PANEL, columns=_COLUMNS, space=_SPACE)
    _agreement(axes[0], found)
    _curve(axes[1], found, [record.entropy for record in found.records], "entropy of q(N|X) (nats)")
    if has_held_out:
        gains = [float("nan") if record.held_out is None else record.held_out for record in found.records]
        _curve(axes[2], found, gains, "held out, above one Gaussian (nats)")
    add_note(figure, found.sentence())
    return figure


def _agreement(ax: Axes, found: Exploration) -> None:
    _curve(ax, found, [record.halves for record in found.records], "agreement of read-outs (ARI)", label="halves")
    if found.n_starts > 1:
        starts = [float("nan") if record.starts is None else record.starts for record in found.records]
        ax.plot(_sizes(found), starts, color=WARNING, marker="s", markersize=3, label="starts")
    ax.axhline(STABLE, color=GREY, linewidth=0.6, linestyle=":")
    if found.hint is not None:
        ax.axvline(found.hint, color=GREY, linewidth=0.6)
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.03)
    ax.legend(loc="lower left")


def _curve(ax: Axes, found: Exploration, values: list[float], title: str, label: str | None = None) -> None:
    ax.plot(_sizes(found), values, color=ACCENT, marker="o", markersize=3, label=label)
    ax.set_title(title, fontsize=8)
    ax.set_xlabel("cells", labelpad=1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _sizes(found: Exploration) -> list[int]:
    return [record.n_cells for record in found.records]
