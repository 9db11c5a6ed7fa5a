"""Rank plots of what chains say of invariants, and edge probabilities of several routes side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import rankdata

from inference.graphs.edge_text import edge_text
from inference.results.chain_findings import ChainFindings
from inference.results.figures.style import (
    GREY,
    Space,
    add_note,
    category_colours,
    colour_legend,
    figure_style,
    panels,
    save_figure,
)
from inference.results.text import shorten

__all__ = ["draw_edge_routes", "draw_ranks", "write_chain_figures"]

_BINS = 20
_MOST_PANELS = 16
_MARKERS = "osD^v"


def write_chain_figures(findings: ChainFindings, routes: Mapping[str, np.ndarray], folder: Path) -> list[Path]:
    """Write `mcmc_ranks.png` and `mcmc_edges.png`; returns their paths.

    Args:
        findings: The chains.
        routes: Edge probabilities `[L, L]` by the name of the route.
        folder: It exists.
    """
    with figure_style():
        written = [save_figure(draw_ranks(findings), folder / "mcmc_ranks.png")]
        if len(findings.nodes) > 1:
            written.append(save_figure(draw_edge_routes(findings.nodes, routes), folder / "mcmc_edges.png"))
    return written


def draw_ranks(findings: ChainFindings) -> Figure:
    """Histograms of the ranks of each chain among all draws; even where the chains agree (Vehtari et al. 2021)."""
    moving = {name: v for name, v in findings.quantities().items() if np.ptp(v) > 0}
    shown = dict(list(moving.items())[:_MOST_PANELS])
    figure, axes = panels(len(shown), size=(1.6, 0.9), columns=4, space=Space(left=0.35, below=0.4, above=0.3))
    colours = category_colours(len(findings.chains.energy))
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        _draw_rank_panel(ax, name, values, colours)
    names = [f"chain {chain}" for chain in range(len(colours))]
    colour_legend(axes[-1], names, list(colours), loc="upper left", bbox_to_anchor=(1.05, 1.0))
    add_note(figure, "Draws per rank, in twentieths; grey: where all chains agree.")
    return figure


def _draw_rank_panel(ax: Axes, name: str, values: np.ndarray, colours: np.ndarray) -> None:
    ranks = rankdata(values).reshape(values.shape)
    edges = np.linspace(0.5, values.size + 0.5, min(_BINS, values.shape[1] // 2) + 1)
    for chain, colour in zip(ranks, colours, strict=True):
        ax.stairs(np.histogram(chain, edges)[0], edges, color=colour)
    ax.axhline(values.shape[1] / (len(edges) - 1), color=GREY, linewidth=0.8, linestyle="--")
    ax.set_title(shorten(name, 26))
    ax.set(ylim=(0, None), xticks=[])


def draw_edge_routes(nodes: tuple[str, ...], routes: Mapping[str, np.ndarray]) -> Figure:
    """A row per possible edge, a mark per route."""
    pairs = np.argwhere(~np.eye(len(nodes), dtype=bool))
    height = min(0.22 * len(pairs) + 0.3, 8.0)
    figure, (ax,) = panels(1, size=(3.2, height), columns=1, space=Space(left=1.2, below=0.45, above=0.3))
    colours, rows = category_colours(len(routes)), np.arange(len(pairs))
    for (name, values), colour, marker in zip(routes.items(), colours, _MARKERS, strict=False):
        where = values[pairs[:, 0], pairs[:, 1]]
        ax.plot(where, rows, marker, color=colour, label=name, markersize=5, markerfacecolor="none", clip_on=False)
    ax.set_yticks(rows, [shorten(edge_text(nodes[i], nodes[j]), 24) for i, j in pairs])
    ax.set(xlim=(0, 1), ylim=(len(pairs) - 0.5, -0.5), xlabel="probability of the edge")
    ax.legend(loc="upper left", bbox_to_anchor=(1.05, 1.0))
    return figure
