"""Rates of edges where there are none and from other samples, and how stable clusters are."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.clusters.stability import STABLE
from causalpima.inference.findings.drawing import ACCENT, FAINT, GREY, WARNING, Space, add_note, panels
from causalpima.inference.store.text import shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "draw_check",
]


_ROW = 0.24
_HALF = 0.18
_NAME = 28


def draw_check(found: Mapping[str, Any]) -> Figure:
    """Agreement of clusters on the left; on the right, where edges are looked for, how often nodes are joined.

    Args:
        found: As `CheckResult.to_dict` has it.
    """
    rows, pairs = _agreements(found), _pairs(found)
    height = max(1.2, _ROW * max(len(rows), 2 * len(pairs)))
    figure, axes = panels(1 + bool(pairs), size=(2.6, height), columns=2, space=Space(left=1.9, below=0.5, above=0.3))
    _draw_agreements(axes[0], rows)
    if pairs:
        _draw_edges(axes[1], found, pairs)
    add_note(figure, *_notes(found, bool(pairs)))
    return figure


def _agreements(found: Mapping[str, Any]) -> dict[str, list[float]]:
    """Values of every row, by its name."""
    rows = {f"other {name}": entry["ari"] for name, entry in found["bootstrap"].items()}
    modalities = found["modalities"]
    if modalities is not None:
        rows["read out again"] = [modalities["intact"]["ari"]]
        rows |= {f"{name} permuted": [entry["ari"]] for name, entry in modalities["permuted"].items()}
    return rows


def _pairs(found: Mapping[str, Any]) -> list[tuple[int, int]]:
    return [] if found["edges"] is None else list(combinations(range(len(found["node_names"])), 2))


def _draw_agreements(ax: Axes, rows: Mapping[str, list[float]]) -> None:
    spread = np.random.default_rng(0)
    for place, values in enumerate(rows.values()):
        ax.plot(values, place + spread.uniform(-_HALF, _HALF, len(values)), "o", color=ACCENT, markersize=3, alpha=0.6)
        ax.plot([np.median(values)] * 2, [place - 0.35, place + 0.35], color=WARNING, linewidth=1.6)
    ax.axvline(STABLE, color=GREY, linewidth=0.8, linestyle=":")
    lowest = min(min(values) for values in rows.values())
    ax.set(xlim=(min(0.5, lowest) - 0.05, 1.03), ylim=(len(rows) - 0.5, -0.5), xlabel="adjusted Rand index")
    ax.set_yticks(range(len(rows)), [shorten(name, _NAME) for name in rows])
    ax.set_title("clusters: agreement with the run")


def _draw_edges(ax: Axes, found: Mapping[str, Any], pairs: list[tuple[int, int]]) -> None:
    names, edges = found["node_names"], np.array(found["edges"])
    bars = [
        ("other samples", _first(found["bootstrap"]), ACCENT, -_HALF),
        ("nodes independent", found["null"], WARNING, _HALF),
    ]
    for label, entry, colour, shift in bars:
        if entry is not None:
            values = [entry["joined_frequency"][a][b] for a, b in pairs]
            ax.barh(np.arange(len(pairs)) + shift, values, 0.32, color=colour, label=label)
            ax.plot(values, np.arange(len(pairs)) + shift, "|", color=colour, markersize=5)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(pairs) - 0.5, -0.5), xlabel="share of repetitions that join them")
    ax.axvline(0, color=FAINT, linewidth=0.6)
    ax.set_yticks(range(len(pairs)), [_pair(names, pair, edges) for pair in pairs])
    ax.set_title("edges (bold: in the run)")
    for text, (a, b) in zip(ax.get_yticklabels(), pairs, strict=True):
        text.set_fontweight("bold" if edges[a, b] else "normal")
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))


def _first(entries: Mapping[str, Any]) -> Any:
    return next(iter(entries.values()), None)


def _pair(names: list[str], pair: tuple[int, int], edges: np.ndarray) -> str:
    mark = "—" if edges[pair] else "  "
    return f"{shorten(names[pair[0]], 12)} {mark} {shorten(names[pair[1]], 12)}"


def _notes(found: Mapping[str, Any], has_edges: bool) -> list[str]:
    notes = [
        f"Points: {found['repetitions']} repetitions (permuted modalities: their mean); orange bar: median; dotted: "
        f"{STABLE}, from where on clusters count as stable."
    ]
    if has_edges:
        notes.append("Where nodes are independent every edge is false. Drawing samples again favours edges.")
    else:
        notes.append(f"Edges: not looked for, since {found['skipped'].get('edges', 'nothing was found')}.")
    return notes
