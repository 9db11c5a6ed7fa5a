"""Latent space by cluster, with the Gaussians that the model puts there."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from inference.results.arrays import FitArrays
from inference.results.figures.cells import Cells
from inference.results.figures.projection import LatentView
from inference.results.figures.style import FAINT, GREY, Space, add_note, colour_legend, panels
from inference.results.text import shorten

__all__ = ["draw_latent_clusters"]

_LEGEND_ROWS = 20
_MOST_NAMED = 32
_LEAST_WEIGHT = 0.001


def draw_latent_clusters(fit: FitArrays, view: LatentView, cells: Cells) -> Figure:
    """Samples coloured by their most probable cell, and the components' mean and two standard deviations.

    Components of weight below 0.001 explain nothing that is drawn, and are left out.
    """
    draw = _draw_line if len(view.labels) == 1 else _draw_plane
    figure = draw(fit, view, cells, _drawn_components(fit))
    add_note(figure, *_notes(fit, view, cells))
    return figure


def _drawn_components(fit: FitArrays) -> np.ndarray:
    mixture = fit.mixture
    finite = np.isfinite(mixture.loc).all(axis=1) & np.isfinite(mixture.covariance).all(axis=(1, 2))
    return np.flatnonzero(finite & (mixture.weight >= _LEAST_WEIGHT))


def _draw_plane(fit: FitArrays, view: LatentView, cells: Cells, drawn: np.ndarray) -> Figure:
    figure, (ax,) = panels(1, size=(4.0, 3.6), columns=1, space=Space())
    x, y = view.points.T
    ax.scatter(x, y, s=view.marker_size, c=_colours(view, cells), linewidths=0, alpha=0.7, rasterized=True)
    centres, covariances = view.locations(fit.mixture.loc[drawn]), view.covariances(fit.mixture.covariance[drawn])
    _make_room(ax, centres, 2.0 * np.sqrt(np.einsum("kdd->kd", covariances)))
    for ellipse in _ellipses(centres, covariances):
        ax.add_patch(ellipse)
    if len(cells.names) <= _MOST_NAMED:
        _name_cells(ax, fit, view, cells, drawn)
    ax.set(xlabel=view.labels[0], ylabel=view.labels[1])
    _legend(ax, cells)
    return figure


def _make_room(ax: Axes, centres: np.ndarray, reach: np.ndarray) -> None:
    """Widen the axes for the ellipses, on each side by a quarter of what the samples need at most."""
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    spare = 0.25 * (high - low)
    low = np.maximum(np.min(centres - reach, axis=0, initial=np.inf), low - spare).clip(max=low)
    high = np.minimum(np.max(centres + reach, axis=0, initial=-np.inf), high + spare).clip(min=high)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _colours(view: LatentView, cells: Cells) -> np.ndarray:
    return np.vstack([cells.colours, [[0.8, 0.8, 0.8, 1.0]]])[cells.assignment[view.rows]]


def _ellipses(centres: np.ndarray, covariances: np.ndarray) -> list[Ellipse]:
    """Ellipses of two standard deviations along each principal axis of the covariances `[K, 2, 2]`."""
    variance, vectors = np.linalg.eigh(covariances)
    diameters = 4.0 * np.sqrt(np.clip(variance, 0.0, None))
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    return [
        Ellipse((x, y), width=major, height=minor, angle=angle, fill=False, edgecolor=GREY, linewidth=0.9)
        for (x, y), (minor, major), angle in zip(centres, diameters, angles, strict=True)
    ]


def _name_cells(ax: Axes, fit: FitArrays, view: LatentView, cells: Cells, drawn: np.ndarray) -> None:
    """Write the name of each cell at the mean of its heaviest component."""
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    seen: set[int] = set()
    for k in drawn[np.argsort(-fit.mixture.weight[drawn], kind="stable")]:
        cell = int(fit.mixture.cell[k])
        if cell not in seen:
            x, y = view.locations(fit.mixture.loc[k])
            name = cells.names[cell]
            ax.text(x, y, name, fontsize=7, ha="center", va="center", bbox=box, clip_on=True)
        seen.add(cell)


def _legend(ax: Axes, cells: Cells) -> None:
    if len(cells.names) > _MOST_NAMED:
        return
    names = [f"{shorten(name, 32)}  n = {count}" for name, count in zip(cells.names, cells.counts, strict=True)]
    colours = list(cells.colours)
    if n_lost := int((cells.assignment < 0).sum()):
        names, colours = [*names, f"no cluster  n = {n_lost}"], [*colours, FAINT]
    place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "ncol": -(-len(names) // _LEGEND_ROWS)}
    legend = colour_legend(ax, names, colours, title=cells.nodes, alignment="left", **place)
    legend.get_title().set_fontsize(7)


def _notes(fit: FitArrays, view: LatentView, cells: Cells) -> list[str]:
    what = "Bars" if len(view.labels) == 1 else "Ellipses"
    projected = " projected on these axes" if fit.latent_loc.shape[1] > 2 else ""
    notes = [f"{what}: two standard deviations of the model's components{projected}."]
    if len(cells.names) > _MOST_NAMED:
        notes.append(f"Colours run through the {len(cells.names)} cells in the order of {cells.nodes}.")
    return [" ".join(notes), view.note]


def _draw_line(fit: FitArrays, view: LatentView, cells: Cells, drawn: np.ndarray) -> Figure:
    figure, (bars, ax) = panels(2, size=(4.0, 1.8), columns=1, space=Space(above=0.0))
    x = view.points[:, 0]
    occupied = np.unique(cells.assignment[view.rows])
    groups = [x[cells.assignment[view.rows] == cell] for cell in occupied]
    colours = [cells.colours[cell] if cell >= 0 else FAINT for cell in occupied]
    if groups:
        n_bins = int(np.clip(2 * np.sqrt(len(x)), 10, 60))
        bars.hist(groups, bins=n_bins, stacked=True, color=colours)
    bars.set(ylabel="samples", xticklabels=[])
    _legend(bars, cells)
    _draw_intervals(ax, fit, cells, drawn)
    ax.set(xlabel=view.labels[0], ylabel="cell", xlim=bars.get_xlim())
    return figure


def _draw_intervals(ax: Axes, fit: FitArrays, cells: Cells, drawn: np.ndarray) -> None:
    mixture = fit.mixture
    spread = 2.0 * np.sqrt(mixture.covariance[drawn, 0, 0])
    rows, colours = mixture.cell[drawn], cells.colours[mixture.cell[drawn]]
    ax.hlines(rows, mixture.loc[drawn, 0] - spread, mixture.loc[drawn, 0] + spread, colors=colours, linewidth=2.5)
    ax.scatter(mixture.loc[drawn, 0], rows, c="white", edgecolors=GREY, s=14, zorder=3)
    ax.set_ylim(len(cells.names) - 0.5, -0.5)
    if len(cells.names) <= _MOST_NAMED // 2:
        ax.set_yticks(range(len(cells.names)), labels=cells.names)
