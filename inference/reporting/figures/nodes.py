"""What distinguishes the outcomes of one node in a modality: decoded means, averaged over the other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.findings.arrays import FitArrays, ModalityArrays
from causalpima.inference.findings.cell_figures import (
    curve_axis,
    decoded_where_measured,
    draw_curve,
    panel_size,
    picture_of,
    position_label,
    scale_positions,
    scale_values,
    value_label,
    value_limits,
    value_range,
)
from causalpima.inference.findings.drawing import (
    CELL,
    GREY,
    NAME_WIDTH,
    NOT_IDENTIFIED,
    Space,
    add_heading,
    add_note,
    category_colours,
    draw_heat_map,
    label_space,
    node_heading,
    node_headings,
    note_width,
    outline,
    panels,
    unnamed_note,
)
from causalpima.inference.store.text import format_number, shorten
from causalpima.models.batch import Standardisation

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "MOST_NODES",
    "draw_explained",
    "draw_node_factors",
    "draw_outcomes",
    "node_averages",
]


MOST_NODES = 12
"""Figures are drawn of so many nodes at most."""

_MOST_OUTCOMES = 6
_FEW_OUTCOMES = 3
_NAME_WIDTH = 12
_MARGIN = 0.06
_BAND = 0.15
_SPREAD = 0.6


class _Outcomes(NamedTuple):
    """One node: its name, the outcomes shown, averages `[C_l, *shape]`, and bands of single samples about them."""

    node: str
    outcomes: tuple[str, ...]
    averages: np.ndarray
    bands: tuple[np.ndarray, np.ndarray] | None = None

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


def draw_outcomes(fit: FitArrays, name: str) -> Iterator[tuple[str, Figure]]:
    """A figure per node: its outcomes, and how each differs from the first; all on one scale. None for categories.

    Yields:
        Name of the node, and its figure.
    """
    modality = fit.modalities[name]
    if modality.likelihood == "categorical":
        return
    nodes = fit.graph.node_names[:MOST_NODES]
    rows = [_outcomes(fit, modality, node) for node in range(len(nodes))]
    largest = float(np.abs(_changes(rows)).max()) or 1.0
    for index, (node, row) in enumerate(zip(nodes, rows, strict=True)):
        figure, note = (
            _draw_images(modality, row, largest) if modality.kind == "image" else _draw_lines(name, modality, row, rows)
        )
        add_heading(figure, f"{shorten(name, 40)}: what changes with {row.node}{_share(fit, name, index)}")
        notes = (_AVERAGES, note, unnamed_note(fit.identifiability), _left_out(fit, index))
        add_note(figure, *notes, width=note_width(figure))
        yield node, figure


_AVERAGES = "Decoded means of the cells, averaged over the other nodes with the same weights."


def _outcomes(fit: FitArrays, modality: ModalityArrays, node: int) -> _Outcomes:
    outcomes = tuple(shorten(outcome, _NAME_WIDTH) for outcome in fit.graph.outcome_names[node][:_MOST_OUTCOMES])
    name = node_heading(fit.graph.node_names[node], fit.identifiability, _NAME_WIDTH)
    # Nothing is drawn where a cell that is averaged over was never measured: a decoder says anything there.
    seen = replace(modality, decoded=decoded_where_measured(modality))
    averages = node_averages(seen, fit.graph.log_joint, node)[:_MOST_OUTCOMES]
    return _Outcomes(name, outcomes, averages, _bands(seen, fit.graph.log_joint, node))


def _bands(modality: ModalityArrays, log_joint: np.ndarray, node: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Where single samples are expected, averaged in the same way; None where the likelihood has no scale."""
    if modality.band is None:
        return None
    seen = np.isfinite(modality.decoded)
    sides = (replace(modality, decoded=np.where(seen, side, np.nan)) for side in modality.band)
    lower, upper = (node_averages(side, log_joint, node) for side in sides)
    return lower[:_MOST_OUTCOMES], upper[:_MOST_OUTCOMES]


def _drawn(row: _Outcomes) -> np.ndarray:
    """All values of the left panel."""
    return np.stack([row.averages, *(row.bands or ())])


def _share(fit: FitArrays, name: str, node: int) -> str:
    found = fit.variance_explained.get(name)
    return "" if found is None else f" ({100 * found.nodes[node]:.0f} % of the variance)"


def _left_out(fit: FitArrays, node: int) -> str:
    count = len(fit.graph.outcome_names[node])
    return f"Shown are the first {_MOST_OUTCOMES} of {count} outcomes." if count > _MOST_OUTCOMES else ""


def _draw_images(modality: ModalityArrays, row: _Outcomes, largest: float) -> tuple[Figure, str]:
    """Differences stand beside the outcomes where these are few, else below them."""
    limits, channels, count = value_range(modality), modality.decoded.shape[-1], len(row.outcomes)
    is_wide = count <= _FEW_OUTCOMES
    columns = 2 * count - 1 if is_wide else count
    height, width = picture_of(row.averages[0]).shape[:2]
    size = panel_size(height, width, side=1.1)
    figure, axes = panels((1 if is_wide else 2) * columns, size=size, columns=columns, space=Space(0.12, 0.05, 0.24))
    places = np.array(axes)
    _show_outcomes(places, row, limits)
    _show_differences(places[count if is_wide else count + 1 :], row, largest, channels)
    for ax in places:
        ax.set_visible(bool(ax.images))
    how = "grey is no change" if channels == 3 else "white is no change, orange is less, purple is more"
    return figure, f"Differences on one scale for all nodes: {how}; the largest is {largest:.3g}."


def _show_outcomes(places: np.ndarray, row: _Outcomes, limits: tuple[float, float]) -> None:
    low, high = limits
    for ax, outcome, values in zip(places, row.outcomes, row.averages, strict=False):
        picture = picture_of((values - low) / (high - low))
        _show(ax, f"{row.node.removesuffix(NOT_IDENTIFIED)} = {outcome}", picture, "gray", (0.0, 1.0))


def _show_differences(places: np.ndarray, row: _Outcomes, largest: float, channels: int) -> None:
    limits = (0.0, 1.0) if channels == 3 else (-largest, largest)
    for ax, outcome, change in zip(places, row.outcomes[1:], row.differences, strict=False):
        scaled = 0.5 + 0.5 * change / largest if channels == 3 else change
        _show(ax, f"{outcome} − {row.outcomes[0]}", picture_of(scaled), "PuOr", limits)


def _show(ax: Axes, title: str, picture: np.ndarray, colours: str, limits: tuple[float, float]) -> None:
    ax.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.set_title(title, fontsize=7, pad=2)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_lines(name: str, modality: ModalityArrays, row: _Outcomes, rows: Sequence[_Outcomes]) -> tuple[Figure, str]:
    """Curves over their positions, entries of vectors as dots: on the left the outcomes, on the right the changes."""
    figure, (left, right) = panels(2, size=(2.3, 1.5), columns=2, space=Space(left=0.65, below=0.5, above=0.25))
    colours = category_colours(len(row.outcomes))
    draw = _draw_curves if modality.kind == "curve" else _draw_dots
    draw(left, modality, row.averages, row.outcomes, colours, row.bands)
    draw(right, modality, row.differences, row.outcomes[1:], colours[1:], None)
    scale_values(left, modality, value_limits(modality, map(_drawn, rows)))
    right.set_ylim(*_change_limits(rows))
    right.axhline(0.0, color=GREY, linewidth=0.6, linestyle="--")
    left.set_ylabel(value_label(name, modality))
    right.set_ylabel(f"change ({shorten(modality.unit, 12)})" if modality.unit else "change")
    for ax, above in ((left, "outcomes"), (right, f"difference from {row.outcomes[0]}")):
        ax.set_title(above, fontsize=8)
        _label_positions(ax, modality)
    handles, labels = left.get_legend_handles_labels()
    right.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.03, 1.0))
    shown, what = ("Bands", "curves") if modality.kind == "curve" else ("Bars", "samples")
    bands = f" {shown}: two standard deviations of single {what}." if row.bands else ""
    return figure, f"On one scale for all nodes.{bands}"


def _change_limits(rows: Sequence[_Outcomes]) -> tuple[float, float]:
    """Of all differences of all nodes, zero among them."""
    low, high = float(_changes(rows).min()), float(_changes(rows).max())
    margin = _MARGIN * (high - low) or 1.0
    return low - margin, high + margin


def _changes(rows: Sequence[_Outcomes]) -> np.ndarray:
    """All finite differences, and zero."""
    changes = np.concatenate([np.zeros(1), *(row.differences.reshape(-1) for row in rows)])
    finite: np.ndarray = changes[np.isfinite(changes)]
    return finite


_Bands = tuple[np.ndarray, np.ndarray] | None


def _draw_curves(
    ax: Axes,
    modality: ModalityArrays,
    table: np.ndarray,
    labels: tuple[str, ...],
    colours: np.ndarray,
    bands: _Bands,
) -> None:
    positions = curve_axis(modality).values
    for index, (label, values, colour) in enumerate(zip(labels, table, colours, strict=True)):
        draw_curve(ax, positions, values.reshape(-1), color=colour, label=label)
        if bands is not None:
            ax.fill_between(positions, *(side[index] for side in bands), color=colour, alpha=_BAND, linewidth=0)


def _draw_dots(
    ax: Axes,
    modality: ModalityArrays,
    table: np.ndarray,
    labels: tuple[str, ...],
    colours: np.ndarray,
    bands: _Bands,
) -> None:
    """A dot per entry, the outcomes side by side: a bar would compare lengths from wherever its axis starts."""
    for index, (label, values, colour) in enumerate(zip(labels, table, colours, strict=True)):
        place = np.arange(values.size) + _SPREAD * ((index + 0.5) / len(labels) - 0.5)
        ax.plot(place, values.reshape(-1), "o", color=colour, label=label, markersize=3)
        if bands is not None:
            ax.vlines(place, *(side[index].reshape(-1) for side in bands), color=colour, linewidth=1.0)
    ax.set_xlim(-0.5, max(table[0].size if len(table) else 1, 1) - 0.5)


def _label_positions(ax: Axes, modality: ModalityArrays) -> None:
    if modality.kind == "curve":
        scale_positions(ax, modality)
        ax.set_xlabel(position_label(modality))
    elif modality.decoded[0].size == 1:
        ax.set(xticks=[])
    else:
        ax.set_xlabel("entry")


# What every node tells of every known factor.


_TITLES = {
    "node_factor_nmi": "normalised mutual information",
    "node_factor_accuracy": "accuracy under the best matching",
}


def draw_node_factors(scores: Mapping[str, Any], identifiability: Mapping[str, Any] | None = None) -> Figure:
    """Two heat maps, node by factor: normalised mutual information and accuracy.

    Outlined is the node that is assigned to a factor, where its accuracy is nearer to 1 than to what random names are
    expected to reach for the factor.

    Args:
        scores: The entry `evaluation` of a summary.
        identifiability: The entry of that name: which nodes have a meaning.
    """
    nodes, assignment = scores["node_names"], scores["assignment"]
    factors = list(assignment)
    size = (CELL[0] * max(len(factors), 3), CELL[1] * len(nodes))
    rows = node_headings(nodes, identifiability, NAME_WIDTH)
    left = 1.7 if any(row.endswith(NOT_IDENTIFIED) for row in rows) else 0.9
    space = Space(left=left, below=0.1, above=0.3 + label_space(factors))
    figure, axes = panels(2, size=size, columns=2, space=space)
    for ax, (key, title) in zip(axes, _TITLES.items(), strict=True):
        table = np.array(scores[key])
        draw_heat_map(ax, table, rows, factors, [[f"{value:.2f}" for value in row] for row in table])
        ax.set_title(title, pad=8)
        for column, factor in enumerate(factors):
            if _tells(scores, factor):
                outline(ax, nodes.index(assignment[factor]), column)
    add_note(figure, *_note(scores), unnamed_note(identifiability), width=note_width(figure))
    return figure


def _tells(scores: Mapping[str, Any], factor: str) -> bool:
    """Whether the node of a factor tells more than chance; evaluations of earlier versions do not know."""
    chance = (scores["random_labelling_baseline"].get("node_accuracy") or {}).get(factor)
    has_node: bool = scores["assignment"][factor] is not None
    return has_node and chance is not None and scores["node_accuracy"][factor] > (1 + chance) / 2


def _note(scores: Mapping[str, Any]) -> list[str]:
    chance = scores["random_labelling_baseline"]
    mean, worst = (format_number(scores[f"node_accuracy_{which}"]) for which in ("mean", "worst"))
    at_random = (format_number(chance[which]) for which in ("mean", "worst"))
    return [
        "Outlined: the node that stands for the factor, each for one, where its accuracy is nearer to 1 than "
        "to that of the same clusters named at random.",
        f"Accuracy of the nodes that are assigned: mean {mean}, worst {worst}; of the same clusters named at random: "
        f"mean {next(at_random)}, worst {next(at_random)}.",
    ]


# How much of every modality's variance every node explains.


_ALL = "all cells"
_WIDE = 1.6


def draw_explained(fit: FitArrays) -> Figure | None:
    """Nodes in rows, modalities in columns; below them what all cells explain together. None without the numbers."""
    if not fit.variance_explained:
        return None
    modalities = list(fit.variance_explained)
    found = [fit.variance_explained[name] for name in modalities]
    table = np.array([[*one.nodes, one.cells] for one in found]).T
    random = np.array([[*one.random, np.nan] for one in found]).T
    rows = [*node_headings(fit.graph.node_names, fit.identifiability, NAME_WIDTH), _ALL]
    size = (_WIDE * CELL[0] * max(len(modalities), 2), CELL[1] * len(rows))
    space = Space(left=0.9, below=0.1, above=0.15 + label_space(modalities))
    figure, (ax,) = panels(1, size=size, columns=1, space=space)
    texts = [[_text(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(table, random, strict=True)]
    draw_heat_map(ax, table, rows, modalities, texts)
    ax.axhline(len(rows) - 1.5, color="white", linewidth=3)
    add_note(
        figure,
        "Share of the variance of each modality between the outcomes of a node, on the scale of the model; in brackets "
        "that of the same clusters named at random. Nodes that depend on each other share what they explain; "
        "the last row is the ceiling of all.",
        unnamed_note(fit.identifiability),
        width=note_width(figure),
    )
    return figure


def _text(value: float, at_random: float) -> str:
    share = f"{100 * value:.0f} %"
    return f"{share} ({100 * at_random:.0f} %)" if np.isfinite(at_random) else share
