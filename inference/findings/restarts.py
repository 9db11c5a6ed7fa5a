"""What several starts of one fit found, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.clusters.clustering import (
    DISAGREE_ARI,
    UNCLEAR_ENTROPY,
    Quality,
    choose,
    count_occupied,
    near_tied,
)
from causalpima.inference.clusters.matching import (
    adjacency_frequency,
    align_cells,
    align_nodes,
    edge_frequency,
    node_agreement,
    pairwise_ari,
)
from causalpima.inference.data.roles import observational_rows
from causalpima.inference.findings.arrays import FitArrays, FoundStart, RestartArrays, StartArrays
from causalpima.inference.findings.base import Finding, RunContent, Section, Summary, Table
from causalpima.inference.findings.drawing import ACCENT, FAINT, GREY, WARNING, Caption, Space, add_note, panels
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.posterior import declared_knowledge, node_likelihood
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.hidden import group_weights
from causalpima.inference.store.text import format_number, is_number, printable

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FINDING",
    "Comparison",
    "agreeing_starts",
    "aligned",
    "alignment",
    "chains",
    "draw_restart_agreement",
    "restart_rows",
    "restart_sentences",
    "restart_summary",
]


_MOST_NAMED = 8
_MOST_PAIRS = 10
_MODES = {"processes": "each on its own", "batched": "as one computation"}


def restart_sentences(summary: Mapping[str, Any]) -> list[str]:
    """Which start was kept and why, how many failed, and how far the others agree; empty of a single start."""
    found = summary.get("restarts")
    if not found:
        return []
    return [
        text for text in (_choice(found), _failures(found), _agreement_sentence(found), _edge_sentence(summary)) if text
    ]


def agreeing_starts(found: Mapping[str, Any]) -> tuple[int, int]:
    """How many other starts that did not fail found the clusters of the kept one, and how many there are.

    Args:
        found: The entry `restarts` of a summary.
    """
    chosen, statuses = found["chosen"], found["statuses"]
    others = [number for number, status in enumerate(statuses) if status == "ok" and number != chosen]
    values = [found["ari"][chosen][number] for number in others]
    return sum(is_number(value) and value >= DISAGREE_ARI for value in values), len(others)


def _choice(found: Mapping[str, Any]) -> str:
    entropies, chosen = found["entropies"], found["chosen"]
    others = sorted(e for number, e in enumerate(entropies) if number != chosen and is_number(e))
    if not is_number(entropies[chosen]):
        return f"None of {found['n']} starts came to an end."
    beside = f", of the others {_range(others)}" if others else ""
    return (
        f"Start {chosen} of 0 to {found['n'] - 1} ({_MODES[found['mode']]}) is kept: "
        f"{found['n_occupied'][chosen]} cells are occupied, and its entropy of q(N|X) is "
        f"{entropies[chosen]:.3f} nats{beside}."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{values[0]:.3f}", f"{values[-1]:.3f}"
    return low if low == high else f"{low} to {high}"


def _failures(found: Mapping[str, Any]) -> str:
    counts = {status: found["statuses"].count(status) for status in ("collapsed", "diverged")}
    words = [f"{count} {status}" for status, count in counts.items() if count]
    return f"{' and '.join(words)} of {found['n']} starts." if words else ""


def _agreement_sentence(found: Mapping[str, Any]) -> str:
    agreement = found.get("agreement")
    if not agreement or not agreement["n_compared"]:
        return ""
    nodes = [f"{printable(name)} {share:.3f}" for name, share in list(agreement["nodes"].items())[:_MOST_NAMED]]
    return (
        f"Agreement with the others that did not fail ({agreement['n_compared']}), as a mean: ARI "
        f"{agreement['ari']:.3f}; with aligned cells, samples of the same outcome {', '.join(nodes)}."
    )


def _edge_sentence(summary: Mapping[str, Any]) -> str:
    """How often pairs of nodes are joined over the starts; empty where that is not known, or nodes have no meaning."""
    found = (summary.get("restarts") or {}).get("edge_frequency")
    if not found or found["n_graphs"] < 2 or not is_named(summary):
        return ""
    names = [printable(name) for name in summary["graph"]["node_names"]]
    pairs = [
        f"{names[i]} - {names[j]} {format_number(found['joined'][i][j], 2)}"
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    more = f" and {len(pairs) - _MOST_PAIRS} more" if len(pairs) > _MOST_PAIRS else ""
    listed = ", ".join(pairs[:_MOST_PAIRS]) + more
    return f"Joined in the best graph of {found['n_graphs']} starts, as a share: {listed}." if pairs else ""


def restart_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """A row per start, the clearest first: number, status, entropy, occupied cells, ARI with the kept one, score."""
    found = summary.get("restarts")
    if not found:
        return []
    accuracies = found.get("cluster_accuracies") or [None] * found["n"]
    return [
        [
            f"{number} (kept)" if number == found["chosen"] else str(number),
            printable(found["statuses"][number]),
            format_number(found["entropies"][number]),
            str(found["n_occupied"][number]),
            format_number(found["ari"][found["chosen"]][number]),
            format_number(accuracies[number]),
        ]
        for number in sorted(range(found["n"]), key=lambda number: _order(found, number))
    ]


def _order(found: Mapping[str, Any], number: int) -> tuple[bool, float]:
    """Starts that failed come last, whatever their entropy."""
    entropy = found["entropies"][number]
    return found["statuses"][number] != "ok", entropy if is_number(entropy) else float("inf")


# Several starts of one fit side by side: which one is kept, and how far their clusters agree.


@dataclass(frozen=True)
class Comparison:
    """Starts of one configuration on the same samples, numbered from 0.

    Attributes:
        starts: All of them, in order.
        qualities: What each is judged by.
        cells: Most probable cell of every sample, `[n]`; None of a start that diverged.
    """

    starts: Sequence[FoundStart]
    qualities: Sequence[Quality]
    cells: Sequence[np.ndarray | None]

    @classmethod
    def of(cls, starts: Sequence[FoundStart]) -> Comparison:
        """Look at the clusters of every start, one after the other."""
        looked = [_look_at(start) for start in starts]
        return cls(starts, [quality for quality, _ in looked], [cells for _, cells in looked])

    @cached_property
    def chosen(self) -> int:
        """Number of the start that is kept."""
        return choose(self.qualities)

    @cached_property
    def near_tied(self) -> list[int]:
        """Numbers of the other starts that could as well have been chosen."""
        return near_tied(self.qualities, self.chosen)

    @cached_property
    def disagreeing(self) -> list[int]:
        """Those of them that found other clusters than the chosen one."""
        return [number for number in self.near_tied if self.ari[number, self.chosen] < DISAGREE_ARI]

    @cached_property
    def ari(self) -> np.ndarray:
        """Adjusted Rand index of every pair, `[K, K]`; NaN with one that diverged."""
        table = np.full((len(self.starts),) * 2, np.nan)
        there = [number for number, cells in enumerate(self.cells) if cells is not None]
        table[np.ix_(there, there)] = pairwise_ari([cells for cells in self.cells if cells is not None])
        return table

    @cached_property
    def chain(self) -> list[int]:
        """Numbers of the starts that become chains: the chosen one, then the others that did not fail."""
        others = [start.number for start in self.starts if start.status == "ok" and start.number != self.chosen]
        return [self.chosen, *others]


def _look_at(start: FoundStart) -> tuple[Quality, np.ndarray | None]:
    if start.file is None:
        return Quality(False, 0, None), None
    responsibilities = start.read().responsibilities
    quality = Quality(start.status == "ok", count_occupied(responsibilities), start.summary["clusters"]["entropy"])
    return quality, responsibilities.argmax(1)


# Starts as chains: their cells numbered alike, and what they say of nodes and edges then.


_MOST_SEARCHED_NODES = 4
_MOST_SEARCHED_SAMPLES = 20_000
_UP_TO_OUTCOMES = {"mask": False, "independence": True}
"""Sources of labellings that leave open which outcome is which, and whether nodes may change places, too."""


def chains(comparison: Comparison, fit: FitArrays) -> RestartArrays:
    """The starts that did not fail as chains, their cells numbered as those of the chosen one.

    Args:
        comparison: The starts.
        fit: The chosen one, as it is numbered now.
    """
    others = [_renumbered(comparison.starts[number], fit) for number in comparison.chain[1:]]
    parts = [_chain(start, fit) for start in (StartArrays.of(fit), *others)]
    likelihood = {name: np.stack([part.log_likelihood[name] for part, *_ in parts]) for name in fit.modalities}
    graphs = [graph for *_, graph in parts if graph is not None]
    latent = [draws for part, *_ in parts[1:] if (draws := _in_latent_space_of(fit, part)) is not None]
    return RestartArrays(
        status=np.array([start.status for start in comparison.starts]),
        entropy=np.array([_number(quality.entropy) for quality in comparison.qualities]),
        ari=comparison.ari,
        chain=np.array(comparison.chain),
        nodes=np.stack([part.nodes for part, *_ in parts]),
        log_weight=np.stack([part.log_weight for part, *_ in parts]),
        log_likelihood=likelihood,
        responsibilities=np.stack([part.responsibilities[fit.draws.samples] for part, *_ in parts]),
        log_joint=np.stack([part.log_joint for part, *_ in parts]),
        node_agreement=np.stack([agreement for _, agreement, _ in parts]),
        cpdag=np.stack(graphs) if graphs else None,
        latent=None if len(latent) < len(parts) - 1 else np.stack([fit.draws.latent, *latent]),
    )


def _number(value: float | None) -> float:
    return np.nan if value is None else value


def _renumbered(found: FoundStart, fit: FitArrays) -> StartArrays:
    start = found.read()
    return aligned(start, alignment(fit, start, found.summary.get("labelling") or {}))


def _chain(start: StartArrays, fit: FitArrays) -> tuple[StartArrays, np.ndarray, np.ndarray | None]:
    """A start with aligned cells, its agreement with the chosen one per node, and the graph of its cells."""
    agreement = node_agreement(fit.responsibilities.argmax(1), start.responsibilities.argmax(1), start.outcomes)
    return start, agreement, _graph(start, fit)


def alignment(fit: FitArrays, start: StartArrays, labelling: Mapping[str, Any]) -> np.ndarray:
    """How the cells of a start are numbered to be compared: only as far as side information does not name them.

    - No side information, or names that a person gave to the chosen start alone: any bijection (`align_cells`).
    - A mask, or nodes that are known to be independent: outcomes within nodes, of independent ones the nodes, too
      (`align_nodes`).
    - Else, cells that agree in the nodes that are named; the identity where all are.

    Args:
        fit: The chosen start, as it is numbered now.
        start: The other one.
        labelling: Where the meaning of the cells of the other one comes from (`summary["labelling"]`).
    """
    reference, other, outcomes = fit.responsibilities, start.responsibilities, start.outcomes
    if (fit.labelling or {}).get("source") == "names":
        return align_cells(reference, other, outcomes)
    source, named = labelling.get("source", "none"), set(labelling.get("named_nodes", ()))
    if source in _UP_TO_OUTCOMES:
        return align_nodes(reference, other, outcomes, exchange=_UP_TO_OUTCOMES[source])
    return align_cells(reference, other, outcomes, [i for i, name in enumerate(fit.graph.node_names) if name in named])


def aligned(start: StartArrays, permutation: np.ndarray) -> StartArrays:
    """The same start with cell c renamed to `permutation[c]`."""
    back, outcomes = np.argsort(permutation), start.outcomes
    cells = np.ravel_multi_index(tuple(np.moveaxis(start.nodes, -1, 0)), outcomes)
    nodes = np.stack(np.unravel_index(permutation[cells], outcomes), axis=-1)
    return replace(
        start,
        responsibilities=start.responsibilities[:, back],
        nodes=nodes.astype(start.nodes.dtype),
        log_joint=start.log_joint.reshape(-1)[back].reshape(outcomes),
    )


def _in_latent_space_of(fit: FitArrays, start: StartArrays) -> np.ndarray | None:
    r"""Draws of Z of another start in the coordinates of the chosen one, `[D, S, J]`; None where they were not kept.

    The affine map that takes the means of q(Z|X) of all samples to those of the chosen start with the least squared
    error. Z is known up to such a map at best: A z + b in encoders, mixture and the first layers of decoders leaves
    the likelihood as it was (Kivva et al. 2022, Identifiability of deep generative models without auxiliary
    information).
    """
    if start.latent is None or start.latent_loc is None:
        return None
    loc, target = start.latent_loc.astype(np.float64), fit.latent_loc.astype(np.float64)
    centre = loc.mean(0)
    slope = np.linalg.lstsq(loc - centre, target - target.mean(0), rcond=None)[0]
    mapped: np.ndarray = (start.latent - centre) @ slope + target.mean(0)
    return mapped.astype(fit.draws.latent.dtype)


def _graph(start: StartArrays, fit: FitArrays) -> np.ndarray | None:
    """The best equivalence class of graphs over the cells, found anew: the learned one was of the old numbers."""
    if len(start.outcomes) > _MOST_SEARCHED_NODES:
        return None
    rows = _searched(fit)
    labels = None if fit.node_labels is None else fit.node_labels[rows]
    likelihood = node_likelihood(start.responsibilities[rows], start.log_joint.reshape(start.outcomes), labels)
    weights = group_weights(None if fit.groups is None else fit.groups[rows])
    known = declared_knowledge(fit.attributes, fit.graph.node_names)
    return score_classes(likelihood, start.outcomes, weights=weights, knowledge=known).best


def _searched(fit: FitArrays) -> np.ndarray:
    """Observational training samples, evenly spread where there are too many."""
    found = np.flatnonzero(observational_rows(fit.split == "train", fit.environment))
    return found[:: -(-len(found) // _MOST_SEARCHED_SAMPLES) or 1]


# The entry `restarts` of a run's summary.


def restart_summary(
    comparison: Comparison, arrays: RestartArrays | None, mode: str, node_names: Sequence[str]
) -> dict[str, Any]:
    """What several starts found together (keys: docs/restarts.md).

    Args:
        comparison: The starts.
        arrays: The same as chains; None where all diverged.
        mode: How they were run.
        node_names: Names of the nodes.
    """
    summaries = [start.summary for start in comparison.starts]
    found: dict[str, Any] = {
        "n": len(summaries),
        "mode": mode,
        "chosen": comparison.chosen,
        "statuses": [summary["status"] for summary in summaries],
        "entropies": [quality.entropy for quality in comparison.qualities],
        "n_occupied": [quality.n_occupied for quality in comparison.qualities],
        "seconds": [summary["seconds"]["total"] for summary in summaries],
        "ari": comparison.ari.tolist(),
        "near_tied": comparison.near_tied,
        "disagreeing": comparison.disagreeing,
        "agreement": None if arrays is None else _agreement_entry(comparison, arrays, node_names),
        "edge_frequency": None if arrays is None else _edge_shares(arrays),
    }
    if any("evaluation" in summary for summary in summaries):
        scores = [summary.get("evaluation", {}) for summary in summaries]
        found["cluster_accuracies"] = [score.get("cluster_accuracy") for score in scores]
    return found


def _agreement_entry(comparison: Comparison, arrays: RestartArrays, node_names: Sequence[str]) -> dict[str, Any]:
    """How far the other chains agree with the chosen one: means over them; None without another."""
    others = arrays.chain[1:]
    ari = comparison.ari[comparison.chosen, others]
    nodes = arrays.node_agreement[1:]
    return {
        "n_compared": len(others),
        "ari": float(ari.mean()) if len(others) else None,
        "nodes": {name: float(nodes[:, i].mean()) if len(others) else None for i, name in enumerate(node_names)},
    }


def _edge_shares(arrays: RestartArrays) -> dict[str, Any] | None:
    """Shares of the chains whose best class of graphs has i -> j, and i and j joined in whichever way."""
    if arrays.cpdag is None:
        return None
    compelled = (arrays.cpdag != 0) & (arrays.cpdag.swapaxes(1, 2) == 0)
    return {
        "n_graphs": len(np.asarray(arrays.cpdag)),
        "directed": edge_frequency(compelled).tolist(),
        "joined": adjacency_frequency(arrays.cpdag).tolist(),
    }


# Figure: the adjusted Rand index of every pair, and the entropy of each.


_START_ROW = 0.3
_LEAST, _MOST = 1.5, 6.0
_MOST_WRITTEN = 24
_LOWEST = 0.5
_MOST_LABELLED = 40


def draw_restart_agreement(restarts: RestartArrays) -> Figure:
    """A matrix of starts by starts, the clearest first, and their entropies beside it.

    Args:
        restarts: The starts; those that diverged are left out.
    """
    order = _finished(restarts)
    side = float(np.clip(_START_ROW * len(order), _LEAST, _MOST))
    figure, (matrix, bars) = panels(2, size=(side, side), columns=2, space=Space(left=0.5, below=0.45, above=0.3))
    _draw_matrix(matrix, restarts.ari[np.ix_(order, order)])
    _draw_bars(bars, restarts, order)
    _label_starts(matrix, restarts, order)
    add_note(figure, *_restart_notes(restarts, len(order)))
    return figure


def _finished(restarts: RestartArrays) -> np.ndarray:
    """Starts that did not diverge; those that collapsed come last, whatever their entropy."""
    order = np.lexsort((restarts.entropy, restarts.status != "ok"))
    return order[np.isfinite(restarts.entropy[order])]


def _draw_matrix(ax: Axes, ari: np.ndarray) -> None:
    ax.imshow(ari, vmin=_LOWEST, vmax=1.0, cmap="Blues", aspect="auto")
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_title("adjusted Rand index")
    if len(ari) <= _MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(ari):
            shade = "white" if value > 0.75 else "black"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=6, color=shade)


def _draw_bars(ax: Axes, restarts: RestartArrays, order: np.ndarray) -> None:
    kept = [restarts.chosen == start for start in order]
    ok = restarts.status[order] == "ok"
    colours = [ACCENT if k else FAINT if fine else WARNING for k, fine in zip(kept, ok, strict=True)]
    entropy = restarts.entropy[order]
    ax.barh(np.arange(len(order)), entropy, height=0.7, color=colours)
    ax.set(ylim=(len(order) - 0.5, -0.5), xlim=(0, max(1.15 * entropy.max(), 1.15 * UNCLEAR_ENTROPY)))
    ax.axvline(UNCLEAR_ENTROPY, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_title("entropy of q(N|X)")
    ax.set_xlabel("nats per sample")
    ax.set_yticks([])


def _label_starts(ax: Axes, restarts: RestartArrays, order: np.ndarray) -> None:
    names = [f"{start} (kept)" if start == restarts.chosen else str(start) for start in order]
    if len(order) > _MOST_LABELLED:
        ax.set(xticks=[], yticks=[])
        return
    ax.set_yticks(range(len(order)), labels=names)
    ax.set_xticks(range(len(order)), labels=[str(start) for start in order])
    ax.set_xlabel("start")
    ax.tick_params(length=0)


def _restart_notes(restarts: RestartArrays, n_shown: int) -> list[str]:
    hidden = len(restarts.entropy) - n_shown
    notes = [
        "White: an index of 0.5 or less. Blue bar: the start that is kept; orange: one that collapsed. Dotted: "
        f"{UNCLEAR_ENTROPY} nats, above which clusters are not clean."
    ]
    return notes + ([f"{hidden} that diverged {'is' if hidden == 1 else 'are'} not shown."] if hidden else [])


# The finding.


_TABLE = (
    "Starts of the same fit, the clearest first. Entropy: mean of q(N|X), in nats, by which the start is chosen among "
    "those with the most occupied cells; the bound does not tell good clusters from bad. ARI: adjusted Rand index with "
    "the kept one."
)


def _section(content: RunContent) -> Iterator[Section]:
    sentences, rows = restart_sentences(content.summary), restart_rows(content.summary)
    head = ("start", "status", "entropy", "cells", "ARI", "cluster accuracy")
    yield Section("restarts", "Stability over starts", sentences, [Table(_TABLE, head, rows)] if rows else [])


def _figures(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    if fit.restarts is not None:
        yield "restart_agreement", draw_restart_agreement(fit.restarts)


FINDING = Finding(
    title="Restarts",
    lines=restart_sentences,
    sections=_section,
    figures=_figures,
    captions={
        "restart_agreement": Caption(
            "restarts",
            "Agreement of the starts",
            "Adjusted Rand index of the clusters of every pair of starts (1: the same), the clearest start first, and "
            "the mean entropy of q(N|X) of each.",
        )
    },
)
