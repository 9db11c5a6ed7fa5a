"""The graph over the nodes, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import (
    ACCENT,
    GREY,
    NOT_IDENTIFIED,
    Space,
    add_heading,
    add_note,
    figure_style,
    node_heading,
    note_width,
    panels,
    save_figure,
    unnamed_note,
)
from causalpima.inference.findings.graph import (
    ShownEdge,
    ShownGraph,
    arrow_notes,
    information_text,
    is_declared,
    short_pairs,
    shown_graph,
)
from causalpima.inference.findings.verdicts import gap_text
from causalpima.inference.store.files import make_folder
from causalpima.inference.store.text import printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_conditionals",
    "draw_edge_probabilities",
    "draw_graph",
    "pairwise_conditional",
    "write_posterior_figures",
]


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
    from matplotlib.patches import Ellipse

    x, y = place
    ax.add_patch(Ellipse((x, y), *(2 * half), facecolor="white", edgecolor=GREY, linewidth=1.0, zorder=3))
    ax.text(x, y, name, ha="center", va="center", fontsize=8, zorder=4)


def _draw_edge(ax: Axes, ends: tuple[np.ndarray, np.ndarray], edge: ShownEdge, n_nodes: int, in_graph: bool) -> None:
    """Thickness: the probability that the two are joined, where it is known."""
    from matplotlib.patches import FancyArrowPatch

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


# Conditional probability of each node given each other node.


_SIDE = 0.34
_GAP = 0.3
_MOST_ROWS_NUMBERED = 30
_TABLE_NAME_WIDTH = 14
_TABLE_CHARACTER = 0.065
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
    scale = _SIDE if sum(log_joint.shape) <= _MOST_ROWS_NUMBERED else max(0.1, _PAGE_WIDTH / width)
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
    outcomes = [[shorten(name, _TABLE_NAME_WIDTH) for name in names] for names in fit.graph.outcome_names]
    names = [name for group in outcomes for name in group]
    longest = max(len(name) for name in names)
    upright = longest * _TABLE_CHARACTER > scale
    middles = np.concatenate([x + np.arange(len(group)) + 0.5 for x, group in zip(starts, outcomes, strict=True)])
    rows = [] if len(starts) == 1 else names
    ax.xaxis.tick_top()
    ax.set_xticks(middles, labels=names, rotation=90 if upright else 0)
    ax.set_yticks([0.5, *(1 + _GAP + middles[: len(rows)])], labels=["marginal", *rows])
    ax.tick_params(length=0, pad=2)
    ax.spines[:].set_visible(False)
    above = 0.12 + (_TABLE_CHARACTER * longest if upright else 0.12)
    for x, group, node in zip(starts, outcomes, fit.graph.node_names, strict=True):
        middle, width = x + len(group) / 2, max(5, int(len(group) * scale / 0.075))
        ax.text(middle, -above / scale, _stacked(node, fit, width), ha="center", va="bottom", fontsize=8)
        if rows:
            left = (0.2 + _TABLE_CHARACTER * longest) / scale
            name = f"given {node_heading(node, fit.identifiability, _TABLE_NAME_WIDTH)}"
            ax.text(-left, middle + 1 + _GAP, name, ha="right", va="center", fontsize=8)


def _stacked(node: str, fit: FitArrays, width: int) -> str:
    """The name of a node with the mark below it, for a narrow column."""
    heading = node_heading(node, fit.identifiability, width)
    name = heading.removesuffix(NOT_IDENTIFIED)
    return name if name == heading else "\n".join([name, *NOT_IDENTIFIED.split()])


# Heat map of the probabilities of edges.


_CELL = 0.42
_MOST_NODES_NUMBERED = 16
_DARK = 0.55


def write_posterior_figures(found: Mapping[str, Any], folder: Path | str) -> list[Path]:
    """Write `edge_probabilities.png`.

    Args:
        found: A posterior, as `inference.graph`'s JSON has it.
        folder: Where it goes; made where it does not exist.

    Raises:
        OutputError: The disk is full, or the folder can't be written to.
    """
    place = make_folder(folder)
    with figure_style():
        return [save_figure(draw_edge_probabilities(found), place / "edge_probabilities.png")]


def draw_edge_probabilities(found: Mapping[str, Any]) -> Figure:
    """p(row → column) of every ordered pair: how sure an edge is, whichever way round, and how sure its direction.

    Args:
        found: A posterior, as `inference.graph`'s JSON has it.
    """
    names = [shorten(printable(name), _NAME_WIDTH) for name in found["nodes"]]
    size = max(2.2, _CELL * len(names))
    wide = 0.15 + 0.07 * max(map(len, names))
    space = Space(left=wide, below=wide, above=0.3)
    figure, axes = panels(2, size=(size, size), columns=2, space=space)
    short = short_pairs(found)
    hidden = np.array([[{a, b} in short or a == b for b in found["nodes"]] for a in found["nodes"]])
    for ax, kind, title in zip(axes, ("edge", "compelled"), ("row → column", "so directed in its class"), strict=True):
        _heat_map(ax, np.where(hidden, np.nan, np.array(found[f"{kind}_probability"], dtype=float)), names)
        ax.set_title(title)
    axes[1].set_yticklabels([])
    add_heading(figure, "Probability of edges")
    add_note(figure, *_notes(found), width=note_width(figure))
    return figure


def _heat_map(ax: Axes, shown: np.ndarray, names: list[str]) -> None:
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=1.0)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    if len(names) <= _MOST_NODES_NUMBERED:
        for i, j in np.argwhere(np.isfinite(shown)):
            colour = "white" if shown[i, j] > _DARK else "black"
            ax.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=6.5, color=colour)


def _notes(found: Mapping[str, Any]) -> list[str]:
    size = found["equivalent_sample_size"]
    score = "BIC" if size is None else f"BDeu, equivalent sample size {size:g}"
    notes = [
        f"Posterior over graphs ({score}) from {found['n_samples']} samples. Rows are causes, columns effects; the sum "
        "of both directions is the probability that two nodes are joined. Right: the part that is not the prior's.",
        "Assumed: no hidden common cause, no selection"
        + ("." if "levels" in found else ", and that the clusters are what their names say."),
    ]
    if short_pairs(found):
        notes.append("Blank: too few samples for the levels of the two.")
    if not found.get("is_named", True):
        notes.append("Clusters are unnamed: this is one of the labellings that fit equally well.")
    return notes
