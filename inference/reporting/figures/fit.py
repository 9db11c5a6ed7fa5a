"""How the fit went: objective, its terms, effective number of components, temperature, decoder variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.drawing import (
    ACCENT,
    FAINT,
    GREY,
    WARNING,
    Space,
    add_note,
    category_colours,
    figure_style,
    note_width,
    panels,
    save_figure,
)
from causalpima.inference.store.text import shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_missing",
    "draw_objective",
    "draw_reliability",
    "wilson_interval",
    "write_missing",
]


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
    from matplotlib.ticker import MaxNLocator

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
    top = ax.dataLim.ymax  # minus infinity where nothing is drawn
    ax.set_ylim(0.0, 1.06 * top if 0.0 < top < np.inf else 1.0)
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


# What is missing where: samples along the page, a row for each kind of measurement.


_WIDTH = 6.0
_BAR = 0.32
_MOST_BARS = 300
_MOST_NAMED = 40
_MOST_ROWS = 40
_NAME_WIDTH = 22


def write_missing(
    path: Path, names: Sequence[str], observed: np.ndarray, sample_names: Sequence[str] | None = None
) -> Path:
    """Draw and write; the arguments are those of `draw_missing`.

    Raises:
        OutputError: The file can't be written.
    """
    with figure_style():
        return save_figure(draw_missing(names, observed, sample_names), path)


def draw_missing(names: Sequence[str], observed: np.ndarray, sample_names: Sequence[str] | None = None) -> Figure:
    """A column for each sample, or for neighbours where there are more than 300, in a row for each modality.

    The blue part of a column is the share of elements that are there, the grey one what single samples lack of a
    measurement, the orange one the share of samples without any: nothing depends on telling shades of a colour apart.

    Args:
        names: Names of the modalities.
        observed: Share of each measurement's elements that is there, `[sample, modality]`, or whether it is (bool).
        sample_names: Names of the samples, shown up to 40; without them, they are numbered from 1.
    """
    shares = np.asarray(observed, dtype=float)
    shown = _most_missing(shares)
    figure, (ax,) = panels(1, size=(_WIDTH, _BAR * len(shown)), columns=1, space=Space(left=1.4, below=0.4, above=0.2))
    edges = _edges(len(shares))
    for row, modality in enumerate(shown):
        _draw_row(ax, row, edges, *_parts(shares[:, modality], edges))
    _label_axis(ax, [names[i] for i in shown], shares[:, shown], sample_names)
    add_note(figure, *_missing_notes(len(shares), edges, len(names) - len(shown)))
    return figure


def _most_missing(shares: np.ndarray) -> np.ndarray:
    """All modalities in their order; of too many, those that lack most."""
    order = np.argsort(shares.mean(axis=0), kind="stable")
    return np.sort(order[:_MOST_ROWS])


def _edges(n_samples: int) -> np.ndarray:
    """Where bars begin and end: each is one sample, or as many neighbours, give or take one."""
    return np.linspace(0, n_samples, min(n_samples, _MOST_BARS) + 1).round().astype(int)


def _parts(shares: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of elements that are there, and of samples that have any, `[bar]` each."""
    there, present = (np.add.reduceat(values, edges[:-1]) / np.diff(edges) for values in (shares, 1.0 * (shares > 0)))
    return there, present


def _draw_row(ax: Axes, row: int, edges: np.ndarray, there: np.ndarray, present: np.ndarray) -> None:
    """Three layers from the foot of the row: what is there, what is lacking in part, what is absent."""
    foot, height = row + 0.92, 0.84
    layers = [np.zeros_like(there), there, present, np.ones_like(there)]
    for begin, end, colour in zip(layers, layers[1:], (ACCENT, FAINT, WARNING), strict=False):
        bottom, top = foot - height * begin, foot - height * end
        if len(there) <= _MOST_NAMED:
            ax.bar((edges[:-1] + edges[1:]) / 2, top - bottom, 0.88, bottom, color=colour, linewidth=0)
        else:
            ax.stairs(top, edges, baseline=bottom, fill=True, color=colour, linewidth=0, antialiased=False)


def _label_axis(ax: Axes, names: Sequence[str], shares: np.ndarray, sample_names: Sequence[str] | None) -> None:
    from matplotlib.patches import Patch

    n_samples = len(shares)
    ax.set(xlim=(0, n_samples), ylim=(len(names), 0))
    ax.set_yticks(np.arange(len(names)) + 0.5, labels=[shorten(name, _NAME_WIDTH) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    _label_samples(ax, n_samples, sample_names)
    for row, count in enumerate((shares > 0).sum(axis=0)):
        text = f"{count} of {n_samples}"
        ax.text(1.01, row + 0.5, text, transform=ax.get_yaxis_transform(), fontsize=7, va="center")
    handles = [Patch(color=colour) for colour in (ACCENT, FAINT, WARNING)]
    words = ["there", "elements missing", "sample lacks it"]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.5, "ncol": 3}
    ax.legend(handles, words, handlelength=1.0, handleheight=1.0, columnspacing=1.5, **place)


def _label_samples(ax: Axes, n_samples: int, sample_names: Sequence[str] | None) -> None:
    if sample_names is None or n_samples > _MOST_NAMED:
        ax.set_xlabel("sample, in the order of the file")
        return
    labels = [shorten(name, _NAME_WIDTH) for name in sample_names]
    upright = max(map(len, labels)) * 0.07 > _WIDTH / n_samples
    ax.set_xticks(np.arange(n_samples) + 0.5, labels=labels, rotation=90 if upright else 0)
    ax.tick_params(axis="x", length=0)


def _missing_notes(n_samples: int, edges: np.ndarray, n_hidden: int) -> list[str]:
    notes = []
    if len(edges) <= n_samples:
        fewest, most = np.diff(edges).min(), np.diff(edges).max()
        count = f"{most}" if fewest == most else f"{fewest} to {most}"
        notes.append(f"Each column stands for {count} samples: its colours are their shares.")
    if n_hidden:
        notes.append(f"{n_hidden} more modalities, which lack less, are not shown.")
    return notes


# Whether clusters are as often right as q(N|X) says.


_Z = 1.959964


def draw_reliability(scores: Mapping[str, Any]) -> Figure:
    """Share of right samples against confidence, in bins of equally many samples, with 95 % intervals.

    Args:
        scores: The entry `evaluation` of a summary.
    """
    found = scores["calibration"]
    confidence, accuracy, count = (np.array(found[key], dtype=float) for key in ("confidence", "accuracy", "count"))
    lower, upper = wilson_interval(accuracy, count)
    figure, (ax,) = panels(1, size=(3.2, 3.2), columns=1, space=Space())
    low = max(0.0, 0.05 * np.floor(20 * min(confidence.min(), lower.min()) - 0.5))
    ax.plot([low, 1], [low, 1], color=GREY, linewidth=0.8, linestyle="--")
    # Rounding may leave a share just outside of its own interval.
    errors = np.clip([accuracy - lower, upper - accuracy], 0, None)
    ax.errorbar(confidence, accuracy, errors, fmt="o", color=ACCENT, markersize=4, elinewidth=0.9)
    ax.set(xlim=(low, 1.01), ylim=(low, 1.01), xlabel="confidence: largest q(N|X)", ylabel="share that is right")
    ax.set_aspect("equal")
    add_note(
        figure,
        f"Expected calibration error {found['ece']:.3f} ({len(count)} bins of equally many samples: "
        f"{found['ece_equal_mass']:.3f}); as many samples would give {found['ece_if_calibrated']:.3f} on average if "
        "q(N|X) were right. Dashed: perfect.",
        "Bars: 95 % intervals of the share. Clusters were matched to the true cells one to one.",
        width=note_width(figure),
    )
    return figure


def wilson_interval(share: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % interval of a probability by the share of successes (Wilson 1927).

    Args:
        share: Share of successes.
        count: Number of trials, positive.
    """
    centre = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
    half = _Z / (1 + _Z**2 / count) * np.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    return centre - half, centre + half
