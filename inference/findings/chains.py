"""Rank plots of what chains say of invariants, and edge probabilities of several routes side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from causalpima.inference.findings.drawing import (
    GREY,
    Space,
    add_note,
    category_colours,
    colour_legend,
    figure_style,
    panels,
    save_figure,
)
from causalpima.inference.findings.verdicts import Line, Verdict, counts, verdict_table
from causalpima.inference.graphs.chains import Chains
from causalpima.inference.graphs.dags import edge_text
from causalpima.inference.store.arviz import convergence, energy_fraction
from causalpima.inference.store.text import printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "LABELLING_NOTE",
    "PRIOR_NOTES",
    "ChainFindings",
    "chain_report",
    "draw_edge_routes",
    "draw_ranks",
    "write_chain_figures",
]


# Whether chains can be believed, and what they found: lines with verdicts, and plain values.


_GOOD_R_HAT, _BAD_R_HAT = 1.01, 1.05
_FEWEST_PER_CHAIN = 100
_LEAST_ENERGY_FRACTION = 0.3
_MORE = "more --draws; if chains stay apart, they visit different modes and their average is no posterior"


@dataclass(frozen=True)
class ChainFindings:
    """Diagnostics of several chains, on what does not depend on names and parametrisation.

    Attributes:
        nodes: Names of the nodes.
        cells: Names of the cells.
        chains: The chains.
        is_indicator: Whether `chains.edge` is a soft edge of each draw (`hodge`), or its probability given the tables.
    """

    nodes: tuple[str, ...]
    cells: tuple[str, ...]
    chains: Chains
    is_indicator: bool

    @property
    def edge_probability(self) -> np.ndarray:
        """p(i -> j), `[L, L]`: share of draws with E > 0.5, or the mean of the probabilities."""
        edges = self.chains.edge > 0.5 if self.is_indicator else self.chains.edge
        return edges.mean((0, 1))

    def quantities(self) -> dict[str, np.ndarray]:
        """Invariants by name, `[chain, draw]` each: log density, cells, edges."""
        cells = {f"p({name})": self.chains.cell_probability[..., i] for i, name in enumerate(self.cells)}
        return {"log density": self.chains.log_density, **cells, **self._edges()}

    def to_plain(self) -> dict[str, Any]:
        """`r_hat`, `ess` {bulk, tail}, `edge_probability`, `mean_edge`, `n_divergent`, `e_bfmi`, `lines`."""
        names, (r_hat, bulk, tail) = list(self.quantities()), self._convergence()
        return {
            "nodes": list(self.nodes),
            "edge_probability": self.edge_probability.tolist(),
            "mean_edge": self.chains.edge.mean((0, 1)).tolist(),
            "cell_probability": self.chains.cell_probability.mean((0, 1)).tolist(),
            "r_hat": _plain(names, r_hat),
            "ess": {"bulk": _plain(names, bulk), "tail": _plain(names, tail)},
            "n_divergent": int(self.chains.diverging.sum()),
            "e_bfmi": [_finite(value) for value in energy_fraction(self.chains.energy)],
            "n_chains": len(self.chains.energy),
            "n_draws": self.chains.energy.shape[1],
            "lines": [line.to_plain() for line in self.lines()],
        }

    def lines(self) -> list[Line]:
        """A line per kind of quantity, and for divergences and energies."""
        r_hat, bulk, tail = self._convergence()
        names = list(self.quantities())
        n_cells = len(self.cells)
        kinds = {
            "log density": slice(0, 1),
            "cell probabilities": slice(1, 1 + n_cells),
            "edges": slice(1 + n_cells, None),
        }
        looked = [
            self._line(kind, names[part], r_hat[part], np.minimum(bulk, tail)[part])
            for kind, part in kinds.items()
            if names[part]
        ]
        return [*looked, self._divergences(), self._energies()]

    def _edges(self) -> dict[str, np.ndarray]:
        """Soft edges, and beside them whether they are above one half: each has its own R-hat."""
        found = {}
        for i, j in np.argwhere(~np.eye(len(self.nodes), dtype=bool)):
            name, value = edge_text(self.nodes[i], self.nodes[j]), self.chains.edge[..., i, j]
            found[f"E({name})" if self.is_indicator else f"p({name})"] = value
            if self.is_indicator:
                found[f"{name}"] = (value > 0.5).astype(float)
        return found

    def _convergence(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        values = np.stack(list(self.quantities().values()), axis=-1)
        r_hat, bulk, tail = convergence(values)
        stuck = (np.ptp(values, axis=1) == 0).all(0) & (np.ptp(values, axis=(0, 1)) > 0)
        r_hat = np.where(stuck & (len(values) > 1), np.inf, r_hat)  # no chain moves, and they disagree
        return r_hat, bulk, tail

    def _line(self, kind: str, names: Sequence[str], r_hat: np.ndarray, ess: np.ndarray) -> Line:
        n_chains, moves = len(self.chains.energy), ~np.isnan(ess)
        if not moves.any() and not np.isinf(r_hat).any():
            return Line(kind, kind, "the same in every draw of every chain", "passes" if n_chains > 1 else "unclear")
        worst = int(np.nanargmax(np.where(np.isnan(r_hat), -np.inf, r_hat)))
        fewest = float(np.nanmin(ess)) if moves.any() else 0.0
        verdict = self._verdict(r_hat, fewest)
        told = f"largest R-hat {r_hat[worst]:.3f} ({names[worst]})" if n_chains > 1 else "one chain, so no R-hat"
        found = f"{told}, smallest effective sample size {fewest:.0f}"
        return Line(kind, kind, found, verdict, "" if verdict == "passes" else _MORE)

    def _verdict(self, r_hat: np.ndarray, fewest: float) -> Verdict:
        n_chains = len(self.chains.energy)
        largest = float(np.nanmax(r_hat)) if np.isfinite(r_hat).any() or np.isinf(r_hat).any() else np.nan
        if largest > _BAD_R_HAT:
            return "fails"
        enough = fewest >= _FEWEST_PER_CHAIN * n_chains
        return "passes" if n_chains > 1 and largest <= _GOOD_R_HAT and enough else "unclear"

    def _divergences(self) -> Line:
        number, total = int(self.chains.diverging.sum()), self.chains.diverging.size
        verdict: Verdict = "passes" if number == 0 else "unclear" if number < 0.01 * total else "fails"
        advice = "" if number == 0 else "the posterior has corners that the sampler misses; see docs/mcmc.md"
        return Line("divergences", "divergent trajectories", f"{number} of {total}", verdict, advice)

    def _energies(self) -> Line:
        lowest = float(np.min(energy_fraction(self.chains.energy)))
        fine = lowest >= _LEAST_ENERGY_FRACTION
        advice = "" if fine else "heavy tails are explored slowly: more --draws and --warmup"
        return Line(
            "e_bfmi", "energy (E-BFMI)", f"smallest of a chain {lowest:.2f}", "passes" if fine else "fails", advice
        )


def _plain(names: Sequence[str], values: np.ndarray) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in zip(names, values, strict=True)}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# Chains in words: edges beside the exact posterior, why the two differ, and the table of verdicts.


PRIOR_NOTES: Mapping[str, str] = {
    "hodge": (
        "Priors differ: (ξ, B, W) makes nearly every pair an edge beforehand (docs/mcmc.md) and averages tables over "
        "non-parents; the exact posterior takes all graphs for equally likely and has a table per family (BDeu)."
    ),
    "dags": "The priors are those of the exact posterior (BDeu), so the two agree within Monte Carlo error where "
    "clusters are clear; where they overlap, the exact one approximates the integral over tables.",
}
LABELLING_NOTE = (
    "The nodes are not named: edges are those of one labelling among many; cell probabilities hold for all."
)
_WIDTH = 24


def chain_report(
    findings: ChainFindings, program: str, exact: np.ndarray | None, prior: np.ndarray | None, is_named: bool
) -> str:
    """Plain text.

    Args:
        findings: The chains.
        program: `hodge` or `dags`.
        exact: Edge probabilities of the exact posterior, `[L, L]`, or None.
        prior: Edge probabilities before the data, under the prior of the program, `[L, L]`.
        is_named: Whether every node has one meaning.
    """
    lines = findings.lines()
    parts = [_edge_table(findings, exact, prior), PRIOR_NOTES[program] if exact is not None else ""]
    parts += ["" if is_named else LABELLING_NOTE, verdict_table(lines), counts(lines)]
    return "\n\n".join(part for part in parts if part)


def _edge_table(findings: ChainFindings, exact: np.ndarray | None, prior: np.ndarray | None) -> str:
    columns: dict[str, Any] = {"chains": findings.edge_probability, "exact": exact, "prior": prior}
    given = {name: values for name, values in columns.items() if values is not None}
    head = f"{'edge':<{_WIDTH}}" + "".join(f"{name:>9}" for name in given)
    rows = [head]
    for i, j in np.argwhere(~np.eye(len(findings.nodes), dtype=bool)):
        name = shorten(printable(edge_text(findings.nodes[i], findings.nodes[j])), _WIDTH - 1)
        rows.append(f"{name:<{_WIDTH}}" + "".join(f"{values[i, j]:>9.3f}" for values in given.values()))
    return "\n".join(rows)


_BINS = 20
_MOST_PANELS = 16
_MARKERS = "osD^v"


def write_chain_figures(findings: ChainFindings, routes: Mapping[str, np.ndarray], folder: Path) -> list[Path]:
    """Write `mcmc_ranks.png` and `mcmc_edges.png`; returns their paths.

    Args:
        findings: The chains.
        routes: Edge probabilities `[L, L]` by the name of the route.
        folder: It exists.
    """
    with figure_style():
        written = [save_figure(draw_ranks(findings), folder / "mcmc_ranks.png")]
        if len(findings.nodes) > 1:
            written.append(save_figure(draw_edge_routes(findings.nodes, routes), folder / "mcmc_edges.png"))
    return written


def draw_ranks(findings: ChainFindings) -> Figure:
    """Histograms of the ranks of each chain among all draws; even where the chains agree (Vehtari et al. 2021)."""
    moving = {name: v for name, v in findings.quantities().items() if np.ptp(v) > 0}
    shown = dict(list(moving.items())[:_MOST_PANELS])
    figure, axes = panels(len(shown), size=(1.6, 0.9), columns=4, space=Space(left=0.35, below=0.4, above=0.3))
    colours = category_colours(len(findings.chains.energy))
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        _draw_rank_panel(ax, name, values, colours)
    names = [f"chain {chain}" for chain in range(len(colours))]
    colour_legend(axes[-1], names, list(colours), loc="upper left", bbox_to_anchor=(1.05, 1.0))
    add_note(figure, "Draws per rank, in twentieths; grey: where all chains agree.")
    return figure


def _draw_rank_panel(ax: Axes, name: str, values: np.ndarray, colours: np.ndarray) -> None:
    ranks = scipy.stats.rankdata(values).reshape(values.shape)
    edges = np.linspace(0.5, values.size + 0.5, min(_BINS, values.shape[1] // 2) + 1)
    for chain, colour in zip(ranks, colours, strict=True):
        ax.stairs(np.histogram(chain, edges)[0], edges, color=colour)
    ax.axhline(values.shape[1] / (len(edges) - 1), color=GREY, linewidth=0.8, linestyle="--")
    ax.set_title(shorten(name, 26))
    ax.set(ylim=(0, None), xticks=[])


def draw_edge_routes(nodes: tuple[str, ...], routes: Mapping[str, np.ndarray]) -> Figure:
    """A row per possible edge, a mark per route."""
    pairs = np.argwhere(~np.eye(len(nodes), dtype=bool))
    height = min(0.22 * len(pairs) + 0.3, 8.0)
    figure, (ax,) = panels(1, size=(3.2, height), columns=1, space=Space(left=1.2, below=0.45, above=0.3))
    colours, rows = category_colours(len(routes)), np.arange(len(pairs))
    for (name, values), colour, marker in zip(routes.items(), colours, _MARKERS, strict=False):
        where = values[pairs[:, 0], pairs[:, 1]]
        ax.plot(where, rows, marker, color=colour, label=name, markersize=5, markerfacecolor="none", clip_on=False)
    ax.set_yticks(rows, [shorten(edge_text(nodes[i], nodes[j]), 24) for i, j in pairs])
    ax.set(xlim=(0, 1), ylim=(len(pairs) - 0.5, -0.5), xlabel="probability of the edge")
    ax.legend(loc="upper left", bbox_to_anchor=(1.05, 1.0))
    return figure
