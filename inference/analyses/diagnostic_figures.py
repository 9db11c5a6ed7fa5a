"""Figures of the diagnostics: k-hat, predictive checks per modality, ranks of several starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.findings.drawing import (
    ACCENT,
    FAINT,
    GREY,
    WARNING,
    Space,
    add_heading,
    add_note,
    category_colours,
    colour_legend,
    figure_style,
    file_names,
    panels,
    save_figure,
)
from causalpima.inference.store.files import make_folder
from causalpima.inference.store.text import shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

if TYPE_CHECKING:
    from causalpima.inference.analyses.diagnose import Diagnosis
    from causalpima.inference.analyses.predictive import Predictive, Statistic

__all__ = [
    "draw_k_hat",
    "draw_predictive",
    "draw_ranks",
    "write_diagnostic_figures",
]


_SHOWN_K = 2.0
_BINS = 20
_MOST_PANELS = 12


def write_diagnostic_figures(found: Diagnosis, folder: Path | str) -> list[Path]:
    """Write what there is; returns the files.

    Args:
        found: The diagnosis.
        folder: Where the files go; made where it does not exist.
    """
    place = make_folder(folder)
    with figure_style():
        return [save_figure(figure, place / f"{name}.png") for name, figure in _figures(found)]


def _figures(found: Diagnosis) -> Iterator[tuple[str, Figure]]:
    if "k_hat" in found.values:
        yield "k_hat", draw_k_hat(found.values["k_hat"])
    for name, file in file_names(found.predictive).items():
        yield f"predictive_{file}", draw_predictive(name, found.predictive[name])
    if found.ranks:
        yield "rank_plots", draw_ranks(found.ranks)


def draw_k_hat(found: Mapping[str, Any]) -> Figure:
    """Sorted k-hat of all samples that have draws, and the limit.

    Args:
        found: The entry `k_hat` of a diagnosis.
    """
    values, limit = np.sort(np.array(found["values"], dtype=float)), found["limit"]
    shown = np.minimum(values, _SHOWN_K)
    figure, (ax,) = panels(1, size=(3.2, 1.8), columns=1, space=Space())
    colours = np.where(values > limit, WARNING, ACCENT)
    ax.scatter(np.linspace(0, 100, len(shown)), shown, c=colours, s=5)
    ax.axhline(limit, color=GREY, linewidth=0.8, linestyle="--")
    ax.set(xlabel="share of the samples, in per cent", ylabel="k-hat", xlim=(-2, 102))
    add_note(
        figure,
        f"{100 * found['share_above']:.0f} % above {limit} (dashed), where q(Z|X) is too far from the posterior for "
        f"importance weights; {found['n_draws']} draws each."
        + (f" Values above {_SHOWN_K:g} are drawn there." if (values > _SHOWN_K).any() else ""),
    )
    return figure


def draw_predictive(name: str, checks: Predictive) -> Figure:
    """Each statistic over all samples: replicates and data; last the PIT.

    Args:
        name: The modality.
        checks: Its checks.
    """
    overall = [one for one in checks.statistics if one.cell is None]
    count = len(overall) + (checks.pit is not None)
    figure, axes = panels(count, size=(1.7, 1.1), columns=3, space=Space(left=0.45, below=0.5, above=0.35))
    for ax, one in zip(axes, overall, strict=False):
        _draw_statistic(ax, one)
    if checks.pit is not None:
        _draw_pit(axes[-1], checks)
    add_heading(figure, shorten(name, 60))
    add_note(figure, *_predictive_notes(checks))
    return figure


def _draw_statistic(ax: Axes, one: Statistic) -> None:
    ax.hist(one.replicated, bins=_BINS, color=FAINT)
    ax.axvline(one.observed, color=WARNING, linewidth=1.6)
    ax.set_title(f"{one.name}: p = {one.p_value:.2f}")
    ax.set(yticks=[], xlabel=f"off by {100 * one.departure:+.0f} %")
    ax.ticklabel_format(axis="x", useOffset=False)
    ax.locator_params(axis="x", nbins=2 if max(map(len, map("{:.4g}".format, ax.get_xlim()))) > 6 else 4)


def _draw_pit(ax: Axes, checks: Predictive) -> None:
    assert checks.pit is not None
    edges = np.linspace(0, 1, len(checks.pit) + 1)
    ax.stairs(checks.pit * len(checks.pit), edges, color=ACCENT, fill=True)
    ax.axhline(1.0, color=GREY, linewidth=0.8, linestyle="--")
    covered = ", ".join(f"{100 * level:g} %: {100 * found:.0f}" for level, (found, *_) in checks.coverage.items())
    ax.set_title(f"PIT (holds {covered} %)")
    ax.set(xlim=(0, 1), xlabel="rank of the data among replicates", ylabel="density")


def _predictive_notes(checks: Predictive) -> list[str]:
    notes = ["Grey: replicated data, one value per draw, mean over samples; orange: the data."]
    if checks.pit is not None:
        notes.append(
            "PIT: level (dashed) where intervals are right, U-shaped where too narrow, hump-shaped where too wide."
        )
    return [*notes, "Replicates come from q(Z|X) of the sample itself, which has seen the data."]


def draw_ranks(quantities: Mapping[str, np.ndarray]) -> Figure:
    """Histograms of the ranks of each start among all draws; even where starts agree (Vehtari et al. 2021).

    Args:
        quantities: `[chain, draw]` by name.
    """
    shown = {name: v for name, v in list(quantities.items())[:_MOST_PANELS] if np.ptp(v) > 0}
    figure, axes = panels(len(shown), size=(1.7, 0.9), columns=3, space=Space(left=0.4, below=0.35, above=0.3))
    colours = category_colours(len(next(iter(quantities.values()))))
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        _draw_rank_panel(ax, name, values, colours)
    names = ["the kept start", *(f"another start ({number})" for number in range(1, len(colours)))]
    colour_legend(axes[-1], names, list(colours), loc="upper left", bbox_to_anchor=(1.05, 1.0))
    add_note(figure, "Draws per interval of ranks; dashed: where all starts say the same.")
    return figure


def _draw_rank_panel(ax: Axes, name: str, values: np.ndarray, colours: np.ndarray) -> None:
    ranks = np.empty(values.size)
    # Ties in random order: by their mean rank they would all fall into one interval.
    ranks[np.lexsort((np.random.default_rng(0).random(values.size), values.ravel()))] = np.arange(values.size) + 1
    edges = np.linspace(0.5, values.size + 0.5, max(1, min(_BINS, values.shape[1] // 2)) + 1)
    for number, (chain, colour) in enumerate(zip(ranks.reshape(values.shape), colours, strict=True)):
        ax.stairs(np.histogram(chain, edges)[0], edges, color=colour, linestyle=("-", "--", ":", "-.")[number % 4])
    ax.axhline(values.shape[1] / (len(edges) - 1), color=GREY, linewidth=0.8, linestyle="--")
    ax.set_title(shorten(name, 28))
    ax.set(xticks=[], ylim=(0, None))
