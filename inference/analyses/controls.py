"""The negative controls: clusters and edges of samples without edges, of other samples, of shuffled modalities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from causalpima.inference.analyses.embedding import (
    EmbeddedRun,
    bootstrap_rows,
    embedding_with_permuted,
    null_rows,
    permuted,
)
from causalpima.inference.clusters.clustering import ReadOut, keep_allowed, mean_entropy, read_out, read_out_round
from causalpima.inference.clusters.labels import UNKNOWN, assign_cells, labelled_mass
from causalpima.inference.clusters.masked import View, masked_em
from causalpima.inference.clusters.matching import ari, match_cells, match_nodes, relabel
from causalpima.inference.findings.verdicts import permutation_p_value
from causalpima.inference.graphs.enumeration import counts_are_quick, is_quick
from causalpima.inference.graphs.hidden import log_likelihood_ratio
from causalpima.inference.graphs.posterior import MOST_SCORED_NODES, NodeSamples, mixture_posterior
from causalpima.inference.graphs.scores import Score
from causalpima.models.block_mixture import level_of_cell, n_levels

__all__ = [
    "Contribution",
    "LabelAgreement",
    "Refits",
    "Sharing",
    "bootstrap",
    "contribution",
    "edges_not_searched",
    "independent_nodes",
    "joined",
    "permuted_labels",
    "refit",
    "sharing",
]


# Cells and edges found anew, by what a run does: read out of the embedding, and the posterior over graphs.


_MORE_LIKELY_THAN_NOT = 0.5
_MOST_FITTED = 4096


def refit(run: EmbeddedRun, rows: np.ndarray, seed: int, loc: np.ndarray | None = None) -> np.ndarray:
    """Cells read out of some samples anew, numbered so that they agree most with those of the run.

    With a third of the starts of a run, on at most 4096 samples. Labels that took part in the training keep their
    samples in the cells that they allow, but not where samples are somewhere else than in the run.

    Args:
        run: The run.
        rows: Which samples, each as often as it is named, `[m]`.
        seed: Of the starts.
        loc: Where all samples are, `[n, J]`; default where the run has them.

    Returns:
        Responsibilities `[m, C]`.
    """
    points = (run.loc if loc is None else loc)[rows]
    found, reference = _read(run, points, rows, seed), run.responsibilities[rows]
    if run.visible:
        permutation = match_nodes(reference, found.cell_responsibilities, run.outcomes, list(run.visible.values()))
    else:
        permutation = match_cells(reference, found.cell_responsibilities)
    found = relabel(found, permutation)
    if run.allowed is not None and loc is None:
        found = keep_allowed(found, run.allowed[rows], points)
    return found.cell_responsibilities


def _read(run: EmbeddedRun, points: np.ndarray, rows: np.ndarray, seed: int) -> ReadOut:
    if run.visible:
        views = [_view(run, name, points, rows) for name in run.visible]
        return masked_em(views, n_starts=8, n_best=1, n_fit=_MOST_FITTED, seed=seed)
    if run.by_node:
        return masked_em(_node_views(run, points), n_starts=8, n_best=1, n_fit=_MOST_FITTED, seed=seed)
    if run.shape == "round":
        return read_out_round(points, run.n_cells, n_init=3, n_fit=_MOST_FITTED, seed=seed)
    return read_out(points, run.n_cells, n_init=1, n_fit=_MOST_FITTED, seed=seed)


def _view(run: EmbeddedRun, name: str, points: np.ndarray, rows: np.ndarray) -> View:
    level = level_of_cell(run.outcomes, run.visible[name])
    return View(points[:, run.block(name)], level, run.present[name][rows])


def _node_views(run: EmbeddedRun, points: np.ndarray) -> list[View]:
    """The blocks of Z in order, one per node, seen of all samples."""
    blocks, all_of_them = np.split(points, len(run.outcomes), axis=1), np.ones(len(points), dtype=bool)
    return [View(block, level_of_cell(run.outcomes, (node,)), all_of_them) for node, block in enumerate(blocks)]


def joined(run: EmbeddedRun, responsibilities: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Which nodes are more likely joined than not, bool `[L, L]`, symmetric: by the posterior over graphs (BIC).

    What the run declares of its graph holds here, too; labels of single samples play no part.

    Args:
        run: For nodes and knowledge.
        responsibilities: q(N|X), `[m, C]`.
        weights: How much each sample counts, `[m]`; None: 1.
    """
    samples = NodeSamples(run.node_names, run.outcomes, log_likelihood_ratio(responsibilities), weights)
    return mixture_posterior(samples, Score(), run.known).adjacency_probability > _MORE_LIKELY_THAN_NOT


def edges_not_searched(run: EmbeddedRun) -> str | None:
    """Why edges are not looked for; None where they are."""
    if len(run.outcomes) < 2:
        return "there is one node"
    if not run.named:
        return "the clusters are unnamed: dependence between their nodes has no meaning"
    likelihood = log_likelihood_ratio(run.responsibilities)
    quick = is_quick if len(run.outcomes) <= MOST_SCORED_NODES else counts_are_quick
    if not quick(likelihood, run.outcomes):
        return "the search takes more than a second, and would be needed dozens of times"
    return None


_N_PERMUTATIONS = 200
_FEWEST = 10

Done = Callable[[], object]


@dataclass(frozen=True)
class Refits:
    """Clusters and edges of K times other samples.

    Attributes:
        ari: Adjusted Rand index of the cells of the run and those found anew, over the distinct samples drawn, `[K]`.
        joined: Which nodes are joined, bool `[K, L, L]`, symmetric; None where edges are not looked for.
        n_units: Number of units that were drawn from.
    """

    ari: np.ndarray
    joined: np.ndarray | None
    n_units: int


@dataclass(frozen=True)
class Contribution:
    """Clusters where some modalities are those of other samples.

    Attributes:
        ari: Agreement with the cells of the run, `[K]`.
        entropy: Mean entropy of q(N|X) of the clusters found anew, nats, `[K]`.
        joined: Which nodes are joined, bool `[K, L, L]`; None where edges are not looked for.
    """

    ari: np.ndarray
    entropy: np.ndarray
    joined: np.ndarray | None


@dataclass(frozen=True)
class Sharing:
    """Whether modalities tell of each other.

    Attributes:
        ari: Agreement of the clusters that each modality has by itself, mean over pairs of modalities.
        shuffled: The same with the modalities shuffled against each other, `[200]`.
    """

    ari: float
    shuffled: np.ndarray

    @property
    def p_value(self) -> float:
        """How often shuffled modalities agree as well."""
        return permutation_p_value(self.ari, self.shuffled)


def independent_nodes(run: EmbeddedRun, repetitions: int, seed: int, done: Done) -> Refits:
    """Samples whose nodes are independent, so that every edge is a false one (`null_rows`).

    Args:
        run: A run whose edges are looked for and whose cells are not empty.
        repetitions: K.
        seed: Seed.
        done: Called after each.
    """
    streams = [np.random.default_rng((seed, 0, number)) for number in range(repetitions)]
    rows = [null_rows(run, stream) for stream in streams]
    n_units = run.n_samples if run.groups is None else len(np.unique(run.groups))
    return _refits(run, rows, [run.weights] * repetitions, n_units, True, seed, done)


def bootstrap(
    run: EmbeddedRun, units: np.ndarray | None, repetitions: int, seed: int, edges: bool, done: Done
) -> Refits:
    """Samples, or whole groups or batches of them, drawn again with replacement.

    Args:
        run: The run.
        units: Codes of what is drawn, `[n]`; None: samples.
        repetitions: K.
        seed: Seed.
        edges: Whether to look for edges.
        done: Called after each.
    """
    streams = [np.random.default_rng((seed, 1, number)) for number in range(repetitions)]
    rows = [bootstrap_rows(run.n_samples, units, stream) for stream in streams]
    weights = [None if run.weights is None else run.weights[chosen] for chosen in rows]
    n_units = run.n_samples if units is None else len(np.unique(units))
    return _refits(run, rows, weights, n_units, edges, seed, done)


_Weights = np.ndarray | None


def _refits(
    run: EmbeddedRun,
    rows: Sequence[np.ndarray],
    weights: Sequence[_Weights],
    n_units: int,
    edges: bool,
    seed: int,
    done: Done,
) -> Refits:
    each = enumerate(zip(rows, weights, strict=True))
    found = [_one(run, chosen, weight, edges, seed + number, done) for number, (chosen, weight) in each]
    ari, graphs = zip(*found, strict=True)
    return Refits(np.array(ari), np.stack(graphs) if edges else None, n_units)


def _one(
    run: EmbeddedRun, rows: np.ndarray, weights: _Weights, edges: bool, seed: int, done: Done
) -> tuple[float, np.ndarray | None]:
    r = refit(run, rows, seed)
    distinct = np.unique(rows, return_index=True)[1]
    agreement = ari(run.cells[rows[distinct]], r.argmax(1)[distinct])
    graph = joined(run, r, weights) if edges else None
    done()
    return agreement, graph


def contribution(
    run: EmbeddedRun, names: tuple[str, ...], repetitions: int, seed: int, edges: bool, done: Done
) -> Contribution:
    """Clusters found anew where these modalities are permuted against the others; none: as they are.

    Args:
        run: A run with several modalities.
        names: Which ones.
        repetitions: K.
        seed: Seed.
        edges: Whether to look for edges.
        done: Called after each.
    """
    found = [_shuffled(run, names, edges, (seed, 2, number), done) for number in range(repetitions)]
    ari, entropy, graphs = zip(*found, strict=True)
    return Contribution(np.array(ari), np.array(entropy), np.stack(graphs) if edges else None)


def _shuffled(
    run: EmbeddedRun, names: tuple[str, ...], edges: bool, key: tuple[int, ...], done: Done
) -> tuple[float, float, np.ndarray | None]:
    loc = embedding_with_permuted(run, names, np.random.default_rng(key))
    r = refit(run, np.arange(run.n_samples), key[0] + key[-1], loc)
    graph = joined(run, r, run.weights) if edges else None
    done()
    return ari(run.cells, r.argmax(1)), mean_entropy(r), graph


def sharing(run: EmbeddedRun, seed: int) -> Sharing | None:
    """Agreement of the clusters that each modality has by itself, before and after shuffling.

    Args:
        run: A run with several modalities, with experts or a mask.
        seed: Seed of read-outs and shuffles.

    Returns:
        None where no two modalities are in ten samples together.
    """
    own = _own_clusters(run, seed)
    pairs = [(a, b, run.present[a] & run.present[b]) for a, b in combinations(own, 2)]
    pairs = [(a, b, both) for a, b, both in pairs if both.sum() >= _FEWEST]
    if not pairs:
        return None
    generator = np.random.default_rng((seed, 3))
    agree = float(np.mean([ari(own[a][both], own[b][both]) for a, b, both in pairs]))
    return Sharing(agree, np.array([_once_shuffled(own, pairs, run.groups, generator) for _ in range(_N_PERMUTATIONS)]))


def _once_shuffled(
    own: Mapping[str, np.ndarray],
    pairs: list[tuple[str, str, np.ndarray]],
    groups: np.ndarray | None,
    generator: np.random.Generator,
) -> float:
    def agreement(a: str, b: str, both: np.ndarray) -> float:
        units = None if groups is None else groups[both]
        return ari(own[a][both], permuted(own[b][both], units, generator))

    return float(np.mean([agreement(*pair) for pair in pairs]))


def _own_clusters(run: EmbeddedRun, seed: int) -> dict[str, np.ndarray]:
    """Most probable cluster of each sample by each modality alone, `[n]`; -1 where it is absent."""
    found = {}
    for name, present in run.present.items():
        labels, points = np.full(run.n_samples, -1), _points(run, name)[present]
        if len(points) >= _FEWEST:
            number = n_levels(run.outcomes, run.visible[name]) if run.visible else run.n_cells
            labels[present] = read_out(points, number, n_init=1, seed=seed).cell_responsibilities.argmax(1)
        found[name] = labels
    return found


def _points(run: EmbeddedRun, name: str) -> np.ndarray:
    return run.loc[:, run.block(name)] if run.visible else run.experts[name].loc


# Labels that name the clusters, permuted: how well would labels agree that have nothing to do with the samples?


@dataclass(frozen=True)
class LabelAgreement:
    """Share of labels that clusters agree with, once they are named by these labels.

    Attributes:
        share: With the labels as they are.
        permuted: With labels permuted among the labelled samples, `[200]`.
        n_labelled: Number of labelled samples.
    """

    share: float
    permuted: np.ndarray
    n_labelled: int

    @property
    def p_value(self) -> float:
        """How often permuted labels agree as well."""
        return permutation_p_value(self.share, self.permuted)


def permuted_labels(
    responsibilities: np.ndarray,
    codes: np.ndarray,
    outcomes: Sequence[int],
    seed: int,
    groups: np.ndarray | None = None,
) -> LabelAgreement:
    """Name the clusters by the labels, and by the same labels permuted; the number of labels of each kind is kept.

    Args:
        responsibilities: q(N|X), `[n, C]`.
        codes: Outcome of each node by the labels, `[n, L]`; `UNKNOWN` where there is none.
        outcomes: Outcomes per node.
        seed: Of the permutations.
        groups: Group of each sample, `[n]`, whose labels are permuted as a whole; None: there are none.
    """
    rows = (codes != UNKNOWN).any(axis=1)
    r, known, generator = responsibilities[rows], codes[rows], np.random.default_rng((seed, 4))
    units = None if groups is None else groups[rows]
    shares = [_agreement(r, permuted(known, units, generator), outcomes) for _ in range(_N_PERMUTATIONS)]
    return LabelAgreement(_agreement(r, known, outcomes), np.array(shares), int(rows.sum()))


def _agreement(r: np.ndarray, codes: np.ndarray, outcomes: Sequence[int]) -> float:
    permutation = assign_cells(labelled_mass(r, codes, outcomes))
    named = np.stack(np.unravel_index(permutation[r.argmax(1)], tuple(outcomes)), axis=1)
    told = codes != UNKNOWN
    return float((named == codes)[told].mean())
