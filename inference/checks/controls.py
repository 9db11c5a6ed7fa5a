"""The negative controls: clusters and edges of samples without edges, of other samples, of shuffled modalities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.metrics import adjusted_rand_score

from inference.checks.embedded_run import EmbeddedRun
from inference.checks.experts import embedding_with_permuted
from inference.checks.refit import joined, refit
from inference.checks.resampling import bootstrap_rows, null_rows, permuted
from inference.clusters.occupancy import mean_entropy
from inference.clusters.read_out import read_out
from inference.results.rates import permutation_p_value
from models.levels import n_levels

__all__ = ["Contribution", "Refits", "Sharing", "bootstrap", "contribution", "independent_nodes", "sharing"]

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
    ari = float(adjusted_rand_score(run.cells[rows[distinct]], r.argmax(1)[distinct]))
    graph = joined(run, r, weights) if edges else None
    done()
    return ari, graph


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
    return float(adjusted_rand_score(run.cells, r.argmax(1))), mean_entropy(r), graph


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
    agree = float(np.mean([adjusted_rand_score(own[a][both], own[b][both]) for a, b, both in pairs]))
    return Sharing(agree, np.array([_once_shuffled(own, pairs, run.groups, generator) for _ in range(_N_PERMUTATIONS)]))


def _once_shuffled(
    own: Mapping[str, np.ndarray],
    pairs: list[tuple[str, str, np.ndarray]],
    groups: np.ndarray | None,
    generator: np.random.Generator,
) -> float:
    def agreement(a: str, b: str, both: np.ndarray) -> float:
        units = None if groups is None else groups[both]
        return float(adjusted_rand_score(own[a][both], permuted(own[b][both], units, generator)))

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
