"""The graph over the nodes with its edge strengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch

from inference.results.arrays import FitArrays
from inference.results.edge_findings import information_text
from inference.results.figures.style import ACCENT, GREY, Space, add_note, panels
from inference.results.mutual_information import mutual_information
from inference.results.text import shorten

__all__ = ["draw_graph"]

_NAME_WIDTH = 16
_LEAST_STRENGTH = 0.05
_MOST_LABELLED = 6
_STRONG: dict[str, Any] = {"color": ACCENT, "linestyle": "-", "zorder": 2}
_WEAK: dict[str, Any] = {"color": "#909090", "linestyle": (0, (3, 2)), "zorder": 1}


def draw_graph(fit: FitArrays, named: bool = False) -> Figure:
    """Nodes on a circle in their own order, clockwise from the top; arrows from cause to effect where nodes are named.

    Edges of strength above 0.5 are in the graph: drawn full and labelled, with the mutual information of the two
    nodes. Weaker ones are dashed and faint, below 0.05 they are left out.

    Args:
        fit: The fit.
        named: Whether every node has one meaning; else lines join the nodes, without heads.
    """
    graph = fit.graph
    names = [shorten(name, _NAME_WIDTH) for name in graph.node_names]
    half = np.array([0.16 + 0.045 * max(len(name) for name in names), 0.2])
    places = _places(len(names), half)
    extent = np.abs(places).max(axis=0) + half + 0.15
    figure, (ax,) = panels(1, size=(2 * extent[0], 2 * extent[1]), columns=1, space=Space(0.1, 0.0, 0.0))
    ax.set(xlim=(-extent[0], extent[0]), ylim=(-extent[1], extent[1]), aspect="equal")
    ax.set_axis_off()
    bits = mutual_information(graph.log_joint) / np.log(2)
    for i, j in np.argwhere(np.nan_to_num(graph.edge_strength) >= _LEAST_STRENGTH):
        strength = float(graph.edge_strength[i, j])
        start, end = _boundary(places[i], places[j], half), _boundary(places[j], places[i], half)
        _draw_edge(ax, start, end, strength, named)
        if strength > 0.5 or len(names) <= _MOST_LABELLED:
            _write_edge(ax, start, end, strength, float(bits[i, j]), len(names))
    for name, place in zip(names, places, strict=True):
        _draw_node(ax, name, place, half)
    add_note(figure, *_note(fit, named))
    return figure


def _places(count: int, half: np.ndarray) -> np.ndarray:
    """Centres of the nodes in inches, `[L, 2]`: one in the middle, two in a row, more on an ellipse."""
    if count == 1:
        return np.zeros((1, 2))
    if count == 2:
        return np.array([[-1.0, 0.0], [1.0, 0.0]]) * (half[0] + 0.6)
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    radius = max(1.0, 0.3 * count)
    return np.column_stack([np.cos(angle), np.sin(angle)]) * [radius + half[0] * 0.8, radius]


def _draw_node(ax: Axes, name: str, place: np.ndarray, half: np.ndarray) -> None:
    x, y = place
    ax.add_patch(Ellipse((x, y), *(2 * half), facecolor="white", edgecolor=GREY, linewidth=1.0, zorder=3))
    ax.text(x, y, name, ha="center", va="center", fontsize=8, zorder=4)


def _draw_edge(ax: Axes, start: np.ndarray, end: np.ndarray, strength: float, named: bool) -> None:
    in_graph = strength > 0.5
    look = _STRONG if in_graph else _WEAK
    width = 0.6 + 2.0 * strength if in_graph else 0.8
    style: dict[str, Any] = {
        "arrowstyle": "-|>" if named else "-",
        "mutation_scale": 7 + 5 * strength,
        "shrinkA": 0,
        "shrinkB": 1,
    }
    ax.add_patch(FancyArrowPatch(tuple(start), tuple(end), linewidth=width, **style, **look))


def _write_edge(ax: Axes, start: np.ndarray, end: np.ndarray, strength: float, bits: float, n_nodes: int) -> None:
    """The strength, and below it the mutual information where the edge is in the graph."""
    in_graph = strength > 0.5
    # Off the middle: there the long edges of a circle meet.
    x, y = start + (0.5 if n_nodes <= 3 else 0.36) * (end - start)
    text = f"{strength:.2f}" + (f"\n{information_text(bits)}" if in_graph and np.isfinite(bits) else "")
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    colour = (_STRONG if in_graph else _WEAK)["color"]
    ax.text(x, y, text, ha="center", va="center", fontsize=7, color=colour, bbox=box, zorder=2.5)


def _boundary(centre: np.ndarray, other: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Where the straight line from `centre` to `other` leaves the ellipse with half axes `half`."""
    direction = other - centre
    return centre + direction / np.linalg.norm(direction / half)


def _note(fit: FitArrays, named: bool) -> list[str]:
    if fit.status != "ok":
        return [f"The fit {fit.status}: this graph means nothing."]
    strength = fit.graph.edge_strength
    if len(strength) == 1:
        return ["One node has no edges."]
    joined = "Arrows run from cause to effect" if named else "Lines join nodes"
    lines = [
        f"{joined}, with edge strength; dashed: below 0.5, not in the graph.",
        "Below the strength: mutual information of the two nodes under p(N). A strength near 1 says nothing of how "
        "strong the dependence is.",
    ]
    if not (strength > 0.5).any():
        lines.append("No edge is above 0.5." if np.isfinite(strength).all() else "Edge strengths are not finite.")
    if not named:
        lines.append("Clusters are unnamed, or not all of them named: the edges hold for one of several labellings.")
    return lines
