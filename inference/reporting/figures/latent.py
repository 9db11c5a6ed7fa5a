"""Latent space by cluster, with the Gaussians that the model puts there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.cell_figures import Cells
from causalpima.inference.findings.drawing import FAINT, GREY, Space, add_note, colour_legend, level_colours, panels
from causalpima.inference.store.text import printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.patches import Ellipse

__all__ = [
    "LatentView",
    "draw_latent_clusters",
    "draw_latent_factors",
    "view_latent",
]


# The latent space as it can be drawn: at most 5000 points on at most two axes.


_MOST_POINTS = 5000


@dataclass(frozen=True)
class LatentView:
    """Points of the latent space on one or two axes.

    Attributes:
        points: Drawn locations `[m, d]`, d = 1 or 2, in random order so that no group lies on top.
        rows: Index of each drawn sample in the data set, `[m]`.
        centre: Point of the latent space that is the origin of the drawing, `[J]`.
        axes: Orthonormal directions `[J, d]`.
        labels: Label of each axis.
        note: What was left out of the drawing; empty where nothing was.
    """

    points: np.ndarray
    rows: np.ndarray
    centre: np.ndarray
    axes: np.ndarray
    labels: tuple[str, ...]
    note: str

    @property
    def marker_size(self) -> float:
        """Area of a marker in square points: large for few samples, small for many."""
        return float(np.clip(4000.0 / max(len(self.points), 1), 3.0, 22.0))

    def locations(self, loc: np.ndarray) -> np.ndarray:
        """Locations `[K, J]` on the axes, `[K, d]`."""
        return (loc - self.centre) @ self.axes

    def covariances(self, covariance: np.ndarray) -> np.ndarray:
        """Covariances `[K, J, J]` of the projected Gaussians, `V' S V`, `[K, d, d]`."""
        return self.axes.T @ covariance @ self.axes


def view_latent(latent: np.ndarray) -> LatentView:
    """Choose what to draw of the latent locations `[n, J]`.

    One and two dimensions are drawn as they are, more on the first two principal axes of the points, labelled with
    their share of the variance. Samples without a finite location are left out, and of more than 5000 a random 5000 are
    drawn.
    """
    rows, note = _drawn_rows(latent)
    drawn = np.asarray(latent[rows], dtype=float)
    n_dims = latent.shape[1]
    if n_dims <= 2 or len(rows) < 2:
        d = min(n_dims, 2)
        centre, axes = np.zeros(n_dims), np.eye(n_dims)[:, :d]
        labels = tuple(f"latent z{'₁₂'[i]}" for i in range(d)) if d > 1 else ("latent z",)
    else:
        centre, axes, labels = _principal_axes(drawn)
    return LatentView((drawn - centre) @ axes, rows, centre, axes, labels, note)


def _drawn_rows(latent: np.ndarray) -> tuple[np.ndarray, str]:
    rows = np.flatnonzero(np.isfinite(latent).all(axis=1))
    n_lost = len(latent) - len(rows)
    order = np.random.default_rng(0).permutation(len(rows))[:_MOST_POINTS]
    notes = [f"{n_lost} samples have no finite location."] if n_lost else []
    if len(order) < len(rows):
        notes.append(f"{len(order)} of {len(rows)} samples are drawn, chosen at random.")
    return rows[order], " ".join(notes)


def _principal_axes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    centre = points.mean(axis=0)
    variance, vectors = np.linalg.eigh(np.cov(points, rowvar=False))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    share = variance[::-1][:2] / max(variance.sum(), np.finfo(float).tiny)
    labels = tuple(f"principal axis {i + 1} of {len(variance)} ({share[i]:.0%})" for i in range(2))
    return centre, axes, labels


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
    _cluster_legend(ax, cells)
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
    from matplotlib.patches import Ellipse

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


def _cluster_legend(ax: Axes, cells: Cells) -> None:
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
    _cluster_legend(bars, cells)
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


# Latent space coloured by what is known about the samples: one panel per factor and measurement.


_PANEL = (2.1, 1.9)
_MOST_LEGEND_LEVELS = 12
_LEVEL_WIDTH = 20
_BELOW = -0.42 / _PANEL[1]


def draw_latent_factors(fit: FitArrays, view: LatentView) -> Figure | None:
    """One panel per known factor, then one per measurement; None where nothing is known."""
    n_panels = len(fit.factors) + len(fit.measurements)
    if not n_panels:
        return None
    levels = {name: _levels(fit, name) for name in fit.factors}
    rows = max((_legend_rows(names) for names in levels.values()), default=1)
    figure, axes = panels(n_panels, size=_PANEL, columns=3, space=Space(below=0.55 + 0.16 * rows))
    for ax, name in zip(axes, fit.factors, strict=False):
        _draw_factor(ax, view, fit.factors[name][view.rows], levels[name])
        ax.set_title(shorten(name, 34))
    for ax, name in zip(axes[len(fit.factors) :], fit.measurements, strict=True):
        _draw_measurement(ax, view, fit.measurements[name][view.rows], name)
        ax.set_title(f"{shorten(name, 24)} (measured)")
    _label_axes(axes, view)
    add_note(figure, view.note)
    return figure


def _levels(fit: FitArrays, name: str) -> list[str]:
    known = list(fit.factor_levels.get(name, ()))
    n_codes = int(fit.factors[name].max(initial=-1)) + 1
    return known + [str(code) for code in range(len(known), n_codes)]


def _draw_factor(ax: Axes, view: LatentView, codes: np.ndarray, levels: Sequence[str]) -> None:
    colours = level_colours(levels)
    known = codes >= 0
    if view.points.shape[1] == 1:
        _histograms(ax, [view.points[codes == code, 0] for code in range(len(levels))], colours)
    else:
        _scatter(ax, view, ~known, FAINT)
        _scatter(ax, view, known, colours[codes[known]])
    if len(levels) <= _MOST_LEGEND_LEVELS:
        _level_legend(ax, levels, colours, has_unknown=not known.all())
    else:
        _level_bar(ax, levels, colours)


def _histograms(ax: Axes, groups: Sequence[np.ndarray], colours: np.ndarray) -> None:
    edges = np.histogram_bin_edges(np.concatenate(groups), bins=40).tolist()
    for values, colour in zip(groups, colours, strict=True):
        ax.hist(values, bins=edges, histtype="stepfilled", color=colour, alpha=0.45)
        ax.hist(values, bins=edges, histtype="step", color=colour)
    ax.set_ylabel("samples")


def _scatter(ax: Axes, view: LatentView, chosen: np.ndarray, colour: np.ndarray | str) -> None:
    x, y = view.points[chosen].T
    ax.scatter(x, y, s=view.marker_size, c=colour, linewidths=0, alpha=0.7, rasterized=True)


def _level_legend(ax: Axes, levels: Sequence[str], colours: np.ndarray, *, has_unknown: bool) -> None:
    names = [shorten(level, _LEVEL_WIDTH) for level in levels] + ["unknown"] * has_unknown
    place = {"loc": "upper left", "bbox_to_anchor": (0, _BELOW), "ncol": _legend_columns(names)}
    colour_legend(ax, names, [*colours, FAINT][: len(names)], **place)


def _legend_columns(names: Sequence[str]) -> int:
    widest = max(len(shorten(name, _LEVEL_WIDTH)) for name in names)
    return max(1, min(len(names), int(_PANEL[0] / (0.3 + 0.062 * widest))))


def _legend_rows(names: Sequence[str]) -> int:
    return 1 if len(names) > _MOST_LEGEND_LEVELS else math.ceil((len(names) + 1) / _legend_columns([*names, "unknown"]))


def _level_bar(ax: Axes, levels: Sequence[str], colours: np.ndarray) -> None:
    """A bar instead of a legend, with at most four of the levels named."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm, ListedColormap

    norm = BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels))
    bar = _colour_bar(ax, ScalarMappable(norm, ListedColormap(colours)))
    ticks = np.linspace(0, len(levels) - 1, 4).round().astype(int)
    bar.set_ticks(list(ticks), labels=[shorten(levels[i], 8) for i in ticks], minor=False)
    bar.minorticks_off()


def _draw_measurement(ax: Axes, view: LatentView, values: np.ndarray, name: str) -> None:
    known = np.isfinite(values)
    if view.points.shape[1] == 1:
        ax.scatter(view.points[known, 0], values[known], s=view.marker_size, linewidths=0, alpha=0.6, rasterized=True)
        ax.set_ylabel(shorten(name, 24))
        return
    _scatter(ax, view, ~known, FAINT)
    x, y = view.points[known].T
    marks = ax.scatter(
        x, y, s=view.marker_size, c=values[known], cmap="viridis", linewidths=0, alpha=0.7, rasterized=True
    )
    _colour_bar(ax, marks).set_label(printable(name))


def _colour_bar(ax: Axes, marks: ScalarMappable) -> Colorbar:
    from matplotlib.cm import ScalarMappable

    opaque = ScalarMappable(marks.norm, marks.cmap)
    bar = ax.figure.colorbar(opaque, cax=ax.inset_axes((0.0, _BELOW - 0.06, 1.0, 0.05)), orientation="horizontal")
    bar.outline.set_visible(False)
    return bar


def _label_axes(axes: Sequence[Axes], view: LatentView) -> None:
    for ax in axes:
        ax.set_xlabel(view.labels[0], labelpad=2)
        if len(view.labels) == 2:
            ax.set_ylabel(view.labels[1])
