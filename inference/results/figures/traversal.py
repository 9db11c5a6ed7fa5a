"""What changes in a modality when one node changes: decoded means, averaged over the other nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from inference.results.arrays import FitArrays, ModalityArrays
from inference.results.figures.cell_images import panel_size, picture_of, value_range
from inference.results.figures.curve_axes import (
    curve_axis,
    draw_curve,
    position_label,
    scale_values,
    value_label,
    value_limits,
)
from inference.results.figures.node_headings import NOT_IDENTIFIED, node_heading, unnamed_note
from inference.results.figures.style import GREY, Space, add_heading, add_note, category_colours, panels
from inference.results.text import shorten
from models.standardisation import Standardisation

__all__ = ["draw_traversal", "node_averages"]

_MOST_NODES = 12
_MOST_OUTCOMES = 6
_FEW_OUTCOMES = 3
_NAME_WIDTH = 12


class _Traversal(NamedTuple):
    """One node: its name, the names of the outcomes shown, their averages `[C_l, *shape]`."""

    node: str
    outcomes: tuple[str, ...]
    averages: np.ndarray

    @property
    def differences(self) -> np.ndarray:
        """Each outcome minus the first."""
        return self.averages[1:] - self.averages[:1]


def node_averages(modality: ModalityArrays, log_joint: np.ndarray, node: int) -> np.ndarray:
    r"""Decoded mean for each outcome of a node, averaged over the others with the same weights for every outcome.

    $$\bar x_o = \sum_{n_{-\ell}} p(N_{-\ell} = n_{-\ell})\ \mathrm{decoded}(N_\ell = o, n_{-\ell})$$

    on the scale of the transform. The weights do not depend on the outcome, so that what differs is the node itself,
    not what comes along with it.

    Args:
        modality: With `decoded` `[C, *shape]`.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        node: Its index.

    Returns:
        `[C_l, *shape]` in the unit of the data.
    """
    scale = Standardisation(transform=modality.transform, knee=modality.knee)  # type: ignore[arg-type]
    decoded = scale.apply(modality.decoded.astype(np.float64)).reshape(*log_joint.shape, -1)
    joint = np.exp(log_joint - log_joint.max())
    others = (joint / joint.sum()).sum(axis=node)
    by_outcome = np.moveaxis(decoded, node, 0).reshape(log_joint.shape[node], others.size, -1)
    averages = np.einsum("k,oke->oe", others.reshape(-1), by_outcome)
    result: np.ndarray = scale.invert(averages).reshape(-1, *modality.decoded.shape[1:])
    return result


def draw_traversal(fit: FitArrays, name: str) -> Figure | None:
    """A row per node: its outcomes, then how each differs from the first; None for categories, which have no mean.

    One node alone has no others to average over: then there are the decoded means themselves, and None here.
    """
    modality = fit.modalities[name]
    if modality.likelihood == "categorical" or len(fit.graph.node_names) == 1:
        return None
    rows = [_traversal(fit, modality, node) for node in range(min(len(fit.graph.node_names), _MOST_NODES))]
    figure, note = _draw_images(modality, rows) if modality.kind == "image" else _draw_lines(name, modality, rows)
    add_heading(figure, f"{shorten(name, 40)}: what changes with each node")
    add_note(
        figure,
        "Decoded means of the cells, averaged over the other nodes with the same weights.",
        unnamed_note(fit.identifiability),
        note,
        _left_out(fit),
    )
    return figure


def _traversal(fit: FitArrays, modality: ModalityArrays, node: int) -> _Traversal:
    outcomes = tuple(shorten(outcome, _NAME_WIDTH) for outcome in fit.graph.outcome_names[node][:_MOST_OUTCOMES])
    averages = node_averages(modality, fit.graph.log_joint, node)[:_MOST_OUTCOMES]
    return _Traversal(node_heading(fit.graph.node_names[node], fit.identifiability, _NAME_WIDTH), outcomes, averages)


def _left_out(fit: FitArrays) -> str:
    nodes, most = len(fit.graph.node_names), max(map(len, fit.graph.outcome_names))
    parts = [f"the first {_MOST_NODES} of {nodes} nodes"] if nodes > _MOST_NODES else []
    parts += [f"the first {_MOST_OUTCOMES} outcomes"] if most > _MOST_OUTCOMES else []
    return f"Shown are {' and '.join(parts)}." if parts else ""


def _draw_images(modality: ModalityArrays, rows: list[_Traversal]) -> tuple[Figure, str]:
    """Differences stand beside the outcomes where these are few, else below them."""
    limits, channels = value_range(modality), modality.decoded.shape[-1]
    most = max(len(row.outcomes) for row in rows)
    is_wide = most <= _FEW_OUTCOMES
    columns = 2 * most - 1 if is_wide else most
    largest = max(float(np.abs(row.differences).max()) for row in rows) or 1.0
    height, width = picture_of(rows[0].averages[0]).shape[:2]
    size = panel_size(height, width, side=0.9)
    n_lines = len(rows) if is_wide else 2 * len(rows)
    figure, axes = panels(n_lines * columns, size=size, columns=columns, space=Space(0.2, 0.05, _above(rows)))
    grid = np.array(axes).reshape(len(rows), -1)
    for row, places in zip(rows, grid, strict=True):
        _show_outcomes(places, row, limits)
        _show_differences(places[most if is_wide else most + 1 :], row, largest, channels)
        _drop_empty(places)
    how = "grey is no change" if channels == 3 else "white is no change"
    return figure, f"Differences are from the first outcome, alike for all nodes; {how}, the largest is {largest:.3g}."


def _above(rows: list[_Traversal]) -> float:
    return 0.34 if any(row.node.endswith(NOT_IDENTIFIED) for row in rows) else 0.22


def _show_outcomes(places: np.ndarray, row: _Traversal, limits: tuple[float, float]) -> None:
    low, high = limits
    for ax, outcome, values in zip(places, row.outcomes, row.averages, strict=False):
        _show(ax, _title(row.node, outcome), picture_of((values - low) / (high - low)), "gray", (0.0, 1.0))


def _title(node: str, outcome: str) -> str:
    """`hue = red`; a node that is not identified says so on a line of its own."""
    name = node.removesuffix(NOT_IDENTIFIED)
    mark = "" if name == node else f"\n{NOT_IDENTIFIED.strip()}"
    return f"{name} = {outcome}{mark}"


def _show_differences(places: np.ndarray, row: _Traversal, largest: float, channels: int) -> None:
    limits = (0.0, 1.0) if channels == 3 else (-largest, largest)
    for ax, outcome, change in zip(places, row.outcomes[1:], row.differences, strict=False):
        scaled = 0.5 + 0.5 * change / largest if channels == 3 else change
        _show(ax, f"{outcome} − {row.outcomes[0]}", picture_of(scaled), "PuOr", limits)


def _show(ax: Axes, title: str, picture: np.ndarray, colours: str, limits: tuple[float, float]) -> None:
    ax.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.set_title(title, fontsize=7, pad=2)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _drop_empty(places: np.ndarray) -> None:
    for ax in places:
        if not ax.images:
            ax.set_visible(False)


def _draw_lines(name: str, modality: ModalityArrays, rows: list[_Traversal]) -> tuple[Figure, str]:
    """Curves over their positions, entries of vectors as dots: on the left the outcomes, on the right the changes."""
    figure, axes = panels(
        2 * len(rows), size=(2.6, 1.3), columns=2, space=Space(left=0.75, below=0.5, above=0.25, right=0.8)
    )
    for row, (left, right) in zip(rows, np.array(axes).reshape(-1, 2), strict=True):
        colours = category_colours(len(row.outcomes))
        for outcome, values, colour in zip(row.outcomes, row.averages, colours, strict=True):
            _line(left, modality, values, colour, outcome)
        for outcome, change, colour in zip(row.outcomes[1:], row.differences, colours[1:], strict=True):
            _line(right, modality, change, colour, f"{outcome} − {row.outcomes[0]}")
        scale_values(left, modality, value_limits(modality, [row.averages]))
        right.axhline(0.0, color=GREY, linewidth=0.6, linestyle="--")
        left.set_title(row.node)
        right.set_title(f"{row.node}: change")
        for ax in (left, right):
            ax.set_ylabel(value_label(name, modality))
            ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))
            _label_positions(ax, modality)
    return figure, "Right: differences from the first outcome."


def _line(ax: Axes, modality: ModalityArrays, values: np.ndarray, colour: np.ndarray, label: str) -> None:
    flat = values.reshape(-1)
    if modality.kind == "curve":
        draw_curve(ax, curve_axis(modality).values, flat, color=colour, label=label)
    else:
        ax.plot(np.arange(len(flat)), flat, "o", markersize=3, color=colour, label=label)


def _label_positions(ax: Axes, modality: ModalityArrays) -> None:
    if modality.kind == "curve":
        ax.set_xlabel(position_label(modality))
    elif modality.decoded[0].size == 1:
        ax.set(xticks=[])
    else:
        ax.set_xlabel("entry")
