"""The graph over the nodes, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyArrowPatch

from inference.results.certainty import gap_text
from inference.results.declared_arrows import arrow_notes, is_declared
from inference.results.edge_findings import information_text
from inference.results.figures.style import ACCENT, GREY, Space, add_note, panels
from inference.results.shown_graph import ShownEdge, ShownGraph, shown_graph
from inference.results.text import shorten

__all__ = ["draw_graph"]

_NAME_WIDTH = 16
_MOST_LABELLED = 6
_CHARACTER = 0.048
_STRONG: dict[str, Any] = {"color": ACCENT, "linestyle": "-", "zorder": 2}
_WEAK: dict[str, Any] = {"color": "#909090", "linestyle": (0, (3, 2)), "zorder": 1}


def draw_graph(summary: Mapping[str, Any]) -> Figure | None:
    """Nodes on a circle in their own order, clockwise from the top, joined as `shown_graph` says.

    Arrows stand only where interventions, or the equivalence class of nodes that all have a meaning, tell the
    direction. None where nothing tells of edges: nodes side by side would read as independent ones.

    Args:
        summary: The summary of a finished fit.
    """
    found = shown_graph(summary)
    if found.basis == "strengths" or len(found.names) == 1:
        return None
    names = [shorten(name, _NAME_WIDTH) for name in found.names]
    half = np.array([0.16 + 0.045 * max(len(name) for name in names), 0.2])
    places = _places(len(names), half)
    low, high = places.min(axis=0) - half - 0.1, places.max(axis=0) + half + 0.1
    size = high - low
    figure, (ax,) = panels(1, size=(float(size[0]), float(size[1])), columns=1, space=Space(0.1, 0.0, 0.0))
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.set_axis_off()
    for edge in (*found.doubtful, *found.edges):
        first, second = places[edge.first], places[edge.second]
        ends = _boundary(first, second, half), _boundary(second, first, half)
        _draw_edge(ax, ends, edge, len(names), edge not in found.doubtful)
    for name, place in zip(names, places, strict=True):
        _draw_node(ax, name, place, half)
    add_note(figure, *_note(summary, found), width=max(64, int(size[0] / _CHARACTER)))
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


def _draw_edge(ax: Axes, ends: tuple[np.ndarray, np.ndarray], edge: ShownEdge, n_nodes: int, in_graph: bool) -> None:
    """Thickness: the probability that the two are joined, where it is known."""
    start, end = ends
    style: dict[str, Any] = {
        "arrowstyle": "-|>" if edge.is_directed else "-",
        "mutation_scale": 12,
        "shrinkA": 0,
        "shrinkB": 1,
        "linewidth": 0.6 + (1.0 if edge.probability is None else edge.probability) if in_graph else 0.8,
    }
    ax.add_patch(FancyArrowPatch(tuple(start), tuple(end), **style, **(_STRONG if in_graph else _WEAK)))
    if in_graph or n_nodes <= _MOST_LABELLED:
        _write_edge(ax, start, end, _edge_text(edge), n_nodes, (_STRONG if in_graph else _WEAK)["color"])


def _edge_text(edge: ShownEdge) -> str:
    """The probability, and the mutual information but of edges not in the graph."""
    probability = [] if edge.probability is None else [f"{edge.probability:.2f}"]
    return "\n".join([*probability, *([] if edge.bits is None else [information_text(edge.bits)])])


def _write_edge(ax: Axes, start: np.ndarray, end: np.ndarray, text: str, n_nodes: int, colour: str) -> None:
    # Off the middle: there the long edges of a circle meet.
    x, y = start + (0.5 if n_nodes <= 3 else 0.36) * (end - start)
    box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
    ax.text(x, y, text, ha="center", va="center", fontsize=7, color=colour, bbox=box, zorder=2.5)


def _boundary(centre: np.ndarray, other: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Where the straight line from `centre` to `other` leaves the ellipse with half axes `half`."""
    direction = other - centre
    return centre + direction / np.linalg.norm(direction / half)


def _note(summary: Mapping[str, Any], found: ShownGraph) -> list[str]:
    if summary["status"] != "ok":
        return [f"The fit {summary['status']}: this graph means nothing."]
    says = {"given": _as_given, "interventions": _by_interventions, "class": _by_class}
    return list(says[found.basis](summary, found))


def _as_given(summary: Mapping[str, Any], found: ShownGraph) -> Iterator[str]:
    yield "The graph that the fit was given: a declaration, not a finding. Arrows run from cause to effect."
    if any(edge.probability is not None for edge in found.edges):
        yield "Beside edges: probability that the two are joined, by a search without regard to it."


def _by_interventions(summary: Mapping[str, Any], found: ShownGraph) -> Iterator[str]:
    gap = gap_text(summary["labelling"]["details"]["graph_gap"])
    yield f"Graph that the interventions tell{f' ({gap})' if gap else ''}. Arrows run from cause to effect."
    yield from _lines_and_numbers(found, "a line: the interventions leave the direction open")


def _by_class(summary: Mapping[str, Any], found: ShownGraph) -> Iterator[str]:
    searched, posterior = (summary["graph"].get(name) for name in ("equivalence_class", "posterior"))
    if posterior:
        share = posterior["classes"][0]["probability"]
        which = "graphs that agree with what was declared" if is_declared(posterior) else "possible graphs"
        yield f"Most probable equivalence class (BIC, all {which} alike beforehand): {share:.2f}."
    else:
        gap = gap_text(searched["gap_nats"])
        yield f"Equivalence class by exact search (BIC){f': {gap}' if gap else ''}."
    for note in arrow_notes(found.matrix(), found.names, "\N{RIGHTWARDS ARROW}"):
        yield f"{note[0].upper()}{note[1:]}."
    yield from _lines_and_numbers(found, "a line: direction not identified")


def _lines_and_numbers(found: ShownGraph, line: str) -> Iterator[str]:
    if not found.edges:
        yield "No edge."
    if any(edge.probability is not None for edge in (*found.edges, *found.doubtful)):
        yield "Number and thickness: probability that the two nodes are joined. Dashed: not in the class."
    if not found.edges:
        return
    if not all(edge.is_directed for edge in found.edges):
        yield f"{line[0].upper()}{line[1:]}."
    yield "At each edge: mutual information of the two nodes under p(N)."
