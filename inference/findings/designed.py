"""Designed nodes: what the experimenter set, and what that does to every modality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from causalpima.inference.clusters.design import DesignedEffect, DesignedNode
from causalpima.inference.findings.arrays import FitArrays, ModalityArrays
from causalpima.inference.findings.base import Finding, RunContent, Section, Summary, Table
from causalpima.inference.findings.cell_figures import (
    curve_axis,
    draw_curve,
    panel_size,
    picture_of,
    position_label,
    scale_values,
    value_label,
    value_limits,
    value_range,
)
from causalpima.inference.findings.drawing import (
    GREY,
    Caption,
    Space,
    add_heading,
    add_note,
    category_colours,
    note_width,
    outcome_files,
    panels,
)
from causalpima.inference.findings.names import (
    axis_names,
    outcome_dimensions,
    position_coords,
    unit_attributes,
    variable_names,
)
from causalpima.inference.store.text import format_number, printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "ASSUMPTIONS",
    "FINDING",
    "designed_group",
    "designed_rows",
    "designed_sentences",
    "designed_summary",
    "draw_designed",
]


ASSUMPTIONS = (
    "Differences in means of the training samples, without a model; causal if outcomes were handed out at random, "
    "regardless of the samples, which the data cannot show"
)

_MOST_ELEMENTS = 16


def designed_summary(nodes: Mapping[str, DesignedNode]) -> dict[str, Any]:
    """The entry `designed` of a summary (docs/run_folder.md), by node."""
    return {
        name: {
            "variable": node.variable,
            "n_labelled": node.n_labelled,
            "n_training": node.n_training,
            "n_groups": node.n_groups,
            "outcomes": list(node.outcomes),
            "modalities": {modality: _effect(effect) for modality, effect in node.effects.items()},
        }
        for name, node in nodes.items()
    }


def _effect(effect: DesignedEffect) -> dict[str, Any]:
    entry = {
        "n_samples": effect.samples.tolist(),
        "n_independent": effect.units.tolist(),
        "explained": effect.explained,
        "p_value": effect.test.p_value,
        "n_permutations": effect.test.n_permutations,
        "standardised_difference": effect.standardised.tolist(),
    }
    if effect.mean[0].size > _MOST_ELEMENTS:
        return entry
    arrays = ("mean", "standard_error", "difference", "lower", "upper")
    return entry | {name: np.asarray(getattr(effect, name), dtype=float).tolist() for name in arrays}


def designed_sentences(summary: Mapping[str, Any]) -> list[str]:
    """What the terminal says of every designed node; a warning where its outcomes are not known of all samples."""
    found = [text for name, node in (summary.get("designed") or {}).items() for text in _node_sentences(name, node)]
    is_any = any(node["modalities"] for node in (summary.get("designed") or {}).values())
    return [*found, f"{ASSUMPTIONS}.", *_about_missing(summary)] if is_any else found


def _about_missing(summary: Mapping[str, Any]) -> list[str]:
    """What is missing may depend on the outcome; then those that were measured are no random part."""
    n_samples = summary["n_samples"]
    lacking = [
        printable(name)
        for name, modality in summary["modalities"].items()
        if modality["present"] < n_samples or (modality.get("missing_elements") or 0.0) > 0
    ]
    if not lacking:
        return []
    return [f"Means are of what was measured: if gaps in {', '.join(lacking)} depend on the outcome, they mislead."]


def _node_sentences(name: str, node: Mapping[str, Any]) -> list[str]:
    shown = printable(name)
    if node["variable"] is None:
        return [f"Warning: {shown} is designed, but not observed: no effects of it; add --observe {shown}=VARIABLE."]
    groups = "" if node["n_groups"] is None else f" in {node['n_groups']} groups"
    known = f"{node['n_labelled']} of {node['n_training']} training samples{groups}"
    effects = [_modality_text(modality, effect) for modality, effect in node["modalities"].items()]
    parts = [f"{shown}, set by the experimenter ({known}), explains: {'; '.join(effects) or 'nothing measurable'}."]
    if node["n_labelled"] < node["n_training"]:
        parts.append(f"Warning: the outcome of {shown} is not known of all training samples; the others are left out.")
    return parts


def _modality_text(modality: str, effect: Mapping[str, Any]) -> str:
    p_value = effect["p_value"]
    return f"{printable(modality)} {100 * effect['explained']:.1f} % of the variance (p = {p_value:.2g})"


def designed_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table of the report: a difference to the first outcome each."""
    rows = []
    for name, node in (summary.get("designed") or {}).items():
        for modality, effect in node["modalities"].items():
            first, *others = map(printable, node["outcomes"])
            for index, outcome in enumerate(others):
                where = f"{printable(name)}: {outcome} − {first} in {printable(modality)}"
                rows.append([where, *_numbers(effect, index)])
    return rows


def _numbers(effect: Mapping[str, Any], index: int) -> list[str]:
    samples = effect["n_samples"]
    return [
        format_number(effect["standardised_difference"][index], 2),
        f"{100 * effect['explained']:.1f} %",
        f"{effect['p_value']:.2g}",
        f"{samples[index + 1]} and {samples[0]}",
        _single_element(effect, index),
    ]


def _single_element(effect: Mapping[str, Any], index: int) -> str:
    """The difference with its interval where the modality is one number; else it is in the figure."""
    values = [np.ravel(effect[name][index]) for name in ("difference", "lower", "upper") if name in effect]
    if not values or values[0].size != 1 or not all(np.isfinite(float(v[0])) for v in values):
        return ""
    value, lower, upper = (float(v[0]) for v in values)
    return f"{value:.3g} [{lower:.3g}, {upper:.3g}]"


# In posterior.nc.


_DESIGNED_NOTE = "difference of means of an outcome to that of the first, with 95 % intervals element by element"


def designed_group(fit: FitArrays) -> xr.Dataset:
    """`mean_NODE_MODALITY` and its standard error by outcome, `difference_...` with `lower_...` and `upper_...`.

    Empty without designed nodes whose outcomes are known.
    """
    parts = list(_parts(fit))
    return xr.merge(parts, join="exact", compat="equals") if parts else xr.Dataset()


def _parts(fit: FitArrays) -> Iterator[xr.Dataset]:
    nodes, modalities = variable_names(fit.graph.node_names), variable_names(fit.modalities)
    dimensions = dict(zip(fit.graph.node_names, outcome_dimensions(fit.graph), strict=True))
    for node, found in fit.designed.items():
        for name, effect in found.effects.items():
            yield _designed_dataset(fit, name, modalities[name], nodes[node], dimensions[node], found.outcomes, effect)


def _designed_dataset(
    fit: FitArrays,
    name: str,
    variable: str,
    node: str,
    dimension: str,
    outcomes: tuple[str, ...],
    effect: DesignedEffect,
) -> xr.Dataset:
    modality, other = fit.modalities[name], f"other_{dimension}"
    axes = axis_names(variable, modality)
    axes += (f"category_{variable}",) if effect.mean.ndim > 1 + len(axes) else ()
    attributes = unit_attributes(modality.unit) | {"note": _DESIGNED_NOTE}
    by_outcome = {"mean": effect.mean, "standard_error": effect.standard_error}
    by_difference = {"difference": effect.difference, "lower": effect.lower, "upper": effect.upper}
    variables = {
        **{f"{key}_{node}_{variable}": ((dimension, *axes), value, attributes) for key, value in by_outcome.items()},
        **{f"{key}_{node}_{variable}": ((other, *axes), value, attributes) for key, value in by_difference.items()},
    }
    names = {dimension: _level_names(outcomes), other: _level_names(outcomes[1:])}
    return xr.Dataset(variables, coords={**names, **position_coords(variable, modality)})


def _level_names(names: tuple[str, ...]) -> np.ndarray:
    return np.array(list(names), dtype=object)


# Figures: measured means by outcome, and their differences to the first.


_MOST_OUTCOMES = 6
_NAME_WIDTH = 14
_BAND = 0.18


def draw_designed(fit: FitArrays, node: str, name: str) -> Figure | None:
    """Means by outcome, and each outcome minus the first with 95 % intervals; None where there is no such effect.

    Args:
        fit: The fit.
        node: The designed node.
        name: The modality.
    """
    found = fit.designed[node]
    effect = found.effects.get(name)
    if effect is None or effect.mean.ndim != fit.modalities[name].decoded.ndim:
        return None
    modality = fit.modalities[name]
    draw = _draw_images if modality.kind == "image" else _draw_lines
    figure, note = draw(name, modality, found, effect)
    explained = f"{100 * effect.explained:.1f} % of the variance, p = {effect.test.p_value:.2g}"
    add_heading(figure, f"{shorten(name, 40)}: effect of {shorten(node, _NAME_WIDTH)} ({explained})")
    many = len(found.outcomes) > _MOST_OUTCOMES
    left_out = f"Shown are the first {_MOST_OUTCOMES} of {len(found.outcomes)} outcomes." if many else ""
    gaps = not fit.present[name].all() or modality.missing_elements > 0
    measured = " Where gaps depend on the outcome, they mislead." if gaps else ""
    add_note(
        figure, f"Means of what was measured, without a model.{measured}", note, left_out, width=note_width(figure)
    )
    return figure


def _names(found: DesignedNode) -> list[str]:
    return [shorten(outcome, _NAME_WIDTH) for outcome in found.outcomes[:_MOST_OUTCOMES]]


def _draw_images(
    name: str, modality: ModalityArrays, found: DesignedNode, effect: DesignedEffect
) -> tuple[Figure, str]:
    """Outcomes above, differences below."""
    names, (low, high), channels = _names(found), value_range(modality), effect.mean.shape[-1]
    pictures = [picture_of((image - low) / (high - low)) for image in effect.mean[: len(names)]]
    height, width = pictures[0].shape[:2]
    size = panel_size(height, width, side=1.1)
    figure, axes = panels(2 * len(names), size=size, columns=len(names), space=Space(0.12, 0.05, 0.24))
    largest = float(np.nanmax(np.abs(effect.difference))) or 1.0
    for ax, outcome, picture in zip(axes, names, pictures, strict=False):
        _show(ax, outcome, picture, "gray", (0.0, 1.0))
    for ax, outcome, change in zip(axes[len(names) + 1 :], names[1:], effect.difference, strict=False):
        scaled = 0.5 + 0.5 * change / largest if channels == 3 else change
        _show(
            ax, f"{outcome} − {names[0]}", picture_of(scaled), "PuOr", (0, 1) if channels == 3 else (-largest, largest)
        )
    axes[len(names)].set_visible(False)
    how = "grey is no change" if channels == 3 else "white is no change, orange is less, purple is more"
    unit = f" {shorten(modality.unit, _NAME_WIDTH)}" if modality.unit else ""
    return figure, f"Differences on one scale: {how}; the largest is {largest:.3g}{unit}."


def _show(ax: Axes, title: str, picture: np.ndarray, colours: str, limits: tuple[float, float]) -> None:
    ax.imshow(picture, cmap=colours, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.set_title(title, fontsize=7, pad=2)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_lines(name: str, modality: ModalityArrays, found: DesignedNode, effect: DesignedEffect) -> tuple[Figure, str]:
    """Means on the left, differences with their intervals on the right."""
    names = _names(found)
    figure, (left, right) = panels(2, size=(2.5, 1.6), columns=2, space=Space(left=0.7, below=0.5, above=0.25))
    colours = category_colours(len(names))
    draw = _draw_curves if modality.kind == "curve" else _draw_entries
    draw(left, modality, names, colours, effect.mean, None)
    draw(right, modality, names[1:], colours[1:], effect.difference, (effect.lower, effect.upper))
    right.axhline(0.0, color=GREY, linewidth=0.6, linestyle="--")
    if modality.kind == "curve":
        scale_values(left, modality, value_limits(modality, [effect.mean]))
    unit = f" ({shorten(modality.unit, 12)})" if modality.unit else ""
    left.set(title="means", ylabel=value_label(name, modality))
    right.set(title=f"difference from {names[0]}", ylabel=f"difference{unit}")
    handles, labels = left.get_legend_handles_labels()
    right.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.03, 1.0))
    shown = "Bands" if modality.kind == "curve" else "Bars"
    return figure, f"{shown}: 95 % intervals, element by element; groups count, not their samples."


def _draw_curves(
    ax: Axes,
    modality: ModalityArrays,
    names: list[str],
    colours: np.ndarray,
    values: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    positions = curve_axis(modality).values
    for index, (label, colour) in enumerate(zip(names, colours, strict=True)):
        draw_curve(ax, positions, values[index], color=colour, label=label)
        if interval is not None:
            ax.fill_between(positions, interval[0][index], interval[1][index], color=colour, alpha=_BAND, linewidth=0)
    ax.set_xlabel(position_label(modality))


def _draw_entries(
    ax: Axes,
    modality: ModalityArrays,
    names: list[str],
    colours: np.ndarray,
    values: np.ndarray,
    interval: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    """A dot per entry of a vector, those of the outcomes beside each other."""
    for index, (label, colour) in enumerate(zip(names, colours, strict=True)):
        flat = values[index].reshape(-1)
        place = np.arange(len(flat)) + 0.6 * ((index + 0.5) / len(names) - 0.5)
        ax.plot(place, flat, "o", color=colour, label=label, markersize=3)
        if interval is not None:
            ax.vlines(place, *(side[index].reshape(-1) for side in interval), color=colour, linewidth=1.0)
    if values[0].size == 1:
        ax.set_xticks([])
    else:
        ax.set_xlabel("entry")


# The finding.


_TABLE = (
    "Standardised: root mean square of the difference over all elements, in standard deviations within the outcomes. "
    "Explained: share of the variance between all outcomes. p: permutations of the outcomes that explain as much. "
    "Value: of modalities of one number, with a 95 % interval; the others are in the pictures."
)


def _entries(fit: FitArrays) -> Mapping[str, Any]:
    return {"designed": designed_summary(fit.designed)} if fit.designed else {}


def _section(content: RunContent) -> Iterator[Section]:
    """Differences of measured means."""
    rows = designed_rows(content.summary)
    head = ("difference", "standardised", "explained", "p", "samples", "value")
    tables = [Table(_TABLE, head, rows)] if rows else []
    yield Section("designed", "Designed nodes", designed_sentences(content.summary), tables)


def _figures(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    files = outcome_files(fit.graph.node_names, fit.modalities)
    for node in fit.designed:
        yield from ((f"designed_{files[node, name]}", draw_designed(fit, node, name)) for name in fit.modalities)


FINDING = Finding(
    title="Designed",
    entries=_entries,
    lines=designed_sentences,
    sections=_section,
    figures=_figures,
    captions={
        "designed": Caption(
            "designed",
            "Effect of a designed node",
            "Means of the measured samples for each outcome that the experimenter set, and how they differ from the "
            "first, with 95 % intervals.",
        )
    },
)
