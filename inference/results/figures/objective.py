"""How the fit went: objective, its terms, effective number of components, temperature, decoder variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from inference.results.arrays import FitArrays
from inference.results.figures.style import WARNING, Space, add_note, category_colours, panels
from inference.results.text import shorten

__all__ = ["draw_objective"]

_PANEL = (1.75, 1.0)
_SPACE = Space(left=0.62, below=0.4, above=0.3)
_COLUMNS = 3
_FEW_EPOCHS = 12

_History = Sequence[Mapping[str, Any]]


class _Quantity(NamedTuple):
    """Curves `[epoch]` of one panel.

    An objective or a term (`is_bound`) may start far below where it ends; anything else is positive, and its axis
    starts at zero, so that small changes look small.
    """

    title: str
    curves: Mapping[str, np.ndarray]
    is_bound: bool


def draw_objective(fit: FitArrays) -> Figure | None:
    """The objective across the page, a small panel per further quantity; None for a fit without history.

    Pretraining is shaded, and curves are broken between the phases, whose objectives differ; distillation, in which
    the rest stands still, has a panel of its own. Gaps are values that are not finite.
    """
    history = [record for record in fit.history if record["phase"] != "distillation"]
    if not history:
        return None
    quantities, distilled = [_objective(fit, history), *_others(history)], fit.history[len(history) :]
    figure, axes = _layout(len(quantities) - 1 + bool(distilled))
    epochs = _epochs(fit.history)[: len(history)]
    pretraining = np.array([record["phase"] == "pretraining" for record in history])
    cut = [_draw_panel(ax, epochs, pretraining, each) for ax, each in zip(axes, quantities, strict=False)]
    if distilled:
        cut.append(_draw_distillation(axes[-1], fit.history, len(history)))
    axes[0].set_ylabel("nats per sample")
    axes[0].legend(loc="lower right")
    _mark_divergence(axes[0], epochs, quantities[0].curves["training"])
    add_note(figure, _note(fit, has_pretraining=bool(pretraining.any()), is_cut=any(cut)))
    return figure


def _draw_distillation(ax: Axes, history: _History, start: int) -> bool:
    """Minus the mean divergence between what an encoder says alone and what all say, over the epochs from `start`."""
    values = _curve(history[start:], "objective")
    quantity = _Quantity("distillation: minus divergence (nats)", {"": values}, is_bound=True)
    return _draw_panel(ax, _epochs(history)[start:], np.zeros(len(values), dtype=bool), quantity)


def _objective(fit: FitArrays, history: _History) -> _Quantity:
    training = _curve(history, "objective")
    validation = _curve(history, "validation_objective")
    curves = {"training": training} | ({} if np.isnan(validation).all() else {"validation": validation})
    return _Quantity(f"{fit.objective} objective, higher is better", curves, is_bound=True)


def _others(history: _History) -> list[_Quantity]:
    """The terms, then what else was recorded."""
    terms = {f"term: {_words(name)} (nats)": ("terms", name) for name in _names(history, "terms")}
    variances = {
        f"decoder variance, {_words(name)}": ("decoder_variance", name) for name in _names(history, "decoder_variance")
    }
    plain = {_words(name): (name,) for name in ("effective_components", "temperature")}
    curves = {title: _curve(history, *path) for title, path in (terms | plain | variances).items()}
    return [
        _Quantity(title, {title: values}, is_bound=title in terms)
        for title, values in curves.items()
        if not np.isnan(values).all()
    ]


def _curve(history: _History, *path: str) -> np.ndarray:
    """Values of one key over the epochs, NaN where it was not recorded."""
    values = [_look_up(record, path) for record in history]
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _look_up(record: Mapping[str, Any], path: Sequence[str]) -> float | None:
    value: Any = record
    for key in path:
        value = None if value is None else value.get(key)
    return value


def _names(history: _History, key: str) -> list[str]:
    return list(dict.fromkeys(name for record in history for name in record.get(key) or ()))


def _words(name: str) -> str:
    return shorten(name.replace("_", " "), 24)


def _layout(count: int) -> tuple[Figure, list[Axes]]:
    """One panel over the whole first row, then `count` panels, three in a row."""
    figure, axes = panels(_COLUMNS + count, size=_PANEL, columns=_COLUMNS, space=_SPACE)
    first, last = axes[0].get_position(), axes[_COLUMNS - 1].get_position()
    for ax in axes[1:_COLUMNS]:
        ax.remove()
    axes[0].set_position((first.x0, first.y0, last.x1 - first.x0, first.height))
    return figure, [axes[0], *axes[_COLUMNS:]]


def _epochs(history: _History) -> np.ndarray:
    """Epochs on one axis: as recorded, or counted through where the count starts again in the second phase."""
    epochs = np.array([record["epoch"] for record in history])
    return epochs if (np.diff(epochs) > 0).all() else np.arange(1, len(epochs) + 1)


def _draw_panel(ax: Axes, epochs: np.ndarray, pretraining: np.ndarray, quantity: _Quantity) -> bool:
    """Draw the curves, one colour each; true where values far from the rest are cut off."""
    _shade(ax, epochs, pretraining)
    marker = "." if len(epochs) <= _FEW_EPOCHS else ""
    for colour, (name, values) in zip(category_colours(2), quantity.curves.items(), strict=False):
        for phase, label in ((pretraining, None), (~pretraining, name)):
            shown = np.where(phase & np.isfinite(values), values, np.nan)
            ax.plot(epochs, shown, color=colour, label=label, marker=marker, markersize=3)
    ax.set_title(quantity.title, fontsize=8)
    ax.set_xlim(epochs[0] - 0.5, epochs[-1] + 0.5)
    ax.set_xlabel("epoch", labelpad=1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(nbins=4))
    if quantity.is_bound:
        return _cut_far_values(ax, np.concatenate(list(quantity.curves.values())))
    ax.set_ylim(bottom=0.0)
    return False


def _cut_far_values(ax: Axes, values: np.ndarray) -> bool:
    """Limit the axis to the bulk of the values; true where that cuts any off."""
    finite = values[np.isfinite(values)]
    low, high = np.quantile(finite, [0.15, 0.85]) if finite.size else (0.0, 0.0)
    if not high > low:
        return False
    bottom, top = max(finite.min(), 2.5 * low - 1.5 * high), min(finite.max(), 2.5 * high - 1.5 * low)
    margin = 0.06 * (top - bottom)
    ax.set_ylim(bottom - margin, top + margin)
    return bool(finite.min() < bottom or finite.max() > top)


def _shade(ax: Axes, epochs: np.ndarray, pretraining: np.ndarray) -> None:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], pretraining, [False]])))
    for first, after in edges.reshape(-1, 2):
        ax.axvspan(epochs[first] - 0.5, epochs[after - 1] + 0.5, color="#eeeeee", linewidth=0, zorder=0)


def _mark_divergence(ax: Axes, epochs: np.ndarray, objective: np.ndarray) -> None:
    lost = np.flatnonzero(~np.isfinite(objective))
    if lost.size:
        first = epochs[lost[0]]
        ax.axvline(first, color=WARNING, linewidth=0.8, linestyle=":")
        place: dict[str, Any] = {"ha": "right", "va": "top", "transform": ax.get_xaxis_transform()}
        ax.text(first, 0.5, f"not finite at epoch {first} ", color=WARNING, fontsize=7, **place)


def _note(fit: FitArrays, *, has_pretraining: bool, is_cut: bool) -> str:
    notes = [f"The mixture has {len(fit.mixture.weight)} components for {fit.responsibilities.shape[1]} cells."]
    if has_pretraining:
        notes.append("Shaded: pretraining, which has an objective of its own.")
    if is_cut:
        notes.append("Values far from the rest run off the scale.")
    return " ".join(notes)
