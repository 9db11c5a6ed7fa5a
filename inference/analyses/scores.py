"""All scores of a fit against what is known of its samples, as plain values: the entry `evaluation` of a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.analyses.node_scores import (
    Calibration,
    Effort,
    Truth,
    best_matching,
    calibration,
    contingency,
    disentanglement,
    factors_of_nodes,
    graph_recovery,
    named_accuracy,
    node_accuracy,
    node_factor_accuracy,
    random_labelling_baseline,
    read_factor,
)
from causalpima.inference.clusters.matching import ari
from causalpima.inference.data.preparation.manifest import Column, read_manifest
from causalpima.inference.data.roles import check_levels
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.graphs.hidden import group_weights

__all__ = [
    "Found",
    "Known",
    "cluster_accuracy",
    "evaluate",
    "nmi",
    "node_factor_nmi",
    "read_labels",
    "scored_samples",
    "scores_of",
]


# How well a fit recovers known factors: the entry `evaluation` of a run's summary.


def evaluate(
    responsibilities: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    *,
    bayes_ceiling: float | None = None,
    node_names: Sequence[str] | None = None,
    mask: np.ndarray | None = None,
    split: str = "all",
    seed: int = 0,
) -> dict[str, Any]:
    """Score the most probable cell of each sample against known factors.

    The true cell is the joint level of all factors; the outcome of a node is that of the most probable cell. Samples
    with an unknown factor (a negative code) are left out.

    Args:
        responsibilities: q(N|X) per cell, row-major over the nodes' outcomes, `[sample, cell]`.
        outcomes: Number of outcomes of each node.
        factors: Integer codes `[sample]` of each known factor.
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier, where known; passed through.
        node_names: Names of the nodes; `N1`, `N2`, ... by default.
        mask: Which samples count, bool `[sample]`; all by default.
        split: Name of the part that `mask` selects.
        seed: Seed of the random labellings.

    Returns:
        The keys `cluster_accuracy`, `nmi`, `ari`, `node_accuracy` {factor: value}, `node_accuracy_mean`,
        `node_accuracy_worst`, `random_labelling_baseline` {mean, worst, node_accuracy}, `node_factor_nmi` and
        `node_factor_accuracy` [node, factor], `assignment` {factor: node}, `bayes_ceiling`, `split` and `n_samples`,
        the number of samples that count; values are of JSON types.

    Raises:
        ValueError: If shapes disagree, a responsibility is not finite, or no sample with known factors is left.
    """
    names = [f"N{node + 1}" for node in range(len(outcomes))] if node_names is None else list(node_names)
    mask = np.ones(len(responsibilities), dtype=bool) if mask is None else mask
    _check_responsibilities(responsibilities, int(np.prod(outcomes)))
    _check_alignment(len(responsibilities), factors, mask)
    _check_names(names, outcomes)
    kept = _kept(factors, mask, split)
    cells = responsibilities[kept].argmax(axis=1)
    known = {name: codes[kept] for name, codes in factors.items()}
    return {
        **_cluster_scores(cells, known),
        **_node_scores(cells, outcomes, known, names, np.random.default_rng(seed)),
        "bayes_ceiling": bayes_ceiling,
        "split": split,
        "n_samples": int(kept.sum()),
    }


def cluster_accuracy(predicted_cells: np.ndarray, true_cells: np.ndarray) -> float:
    """Share of samples in the right cell under the best one-to-one matching of predicted to true cells."""
    return best_matching(contingency(predicted_cells, true_cells)) / len(true_cells)


def nmi(predicted_cells: np.ndarray, true_cells: np.ndarray) -> float:
    """Mutual information divided by the arithmetic mean of the two entropies."""
    from sklearn.metrics import normalized_mutual_info_score  # late: half a second of the start of every command

    return float(normalized_mutual_info_score(true_cells, predicted_cells))


def node_factor_nmi(nodes: np.ndarray, factors: Mapping[str, np.ndarray]) -> np.ndarray:
    """Normalised mutual information of every node with every factor, `[node, factor]`; nodes are `[sample, node]`."""
    return np.array([[nmi(node, codes) for codes in factors.values()] for node in nodes.T])


def _cluster_scores(cells: np.ndarray, factors: Mapping[str, np.ndarray]) -> dict[str, float]:
    levels = np.stack(list(factors.values()), axis=1)
    true_cells = np.unique(levels, axis=0, return_inverse=True)[1].reshape(-1)
    return {
        "cluster_accuracy": cluster_accuracy(cells, true_cells),
        "nmi": nmi(cells, true_cells),
        "ari": ari(cells, true_cells),
    }


def _node_scores(
    cells: np.ndarray,
    outcomes: Sequence[int],
    factors: Mapping[str, np.ndarray],
    names: Sequence[str],
    generator: np.random.Generator,
) -> dict[str, Any]:
    nodes = np.stack(np.unravel_index(cells, tuple(outcomes)), axis=1)
    found = node_accuracy(nodes, outcomes, factors)
    chance = random_labelling_baseline(cells, outcomes, factors, generator)
    return {
        "node_accuracy": dict(found.accuracy),
        "node_accuracy_mean": found.mean,
        "node_accuracy_worst": found.worst,
        "random_labelling_baseline": {
            "mean": chance.mean,
            "worst": chance.worst,
            "node_accuracy": dict(chance.accuracy),
        },
        "node_factor_nmi": node_factor_nmi(nodes, factors).tolist(),
        "node_factor_accuracy": node_factor_accuracy(nodes, outcomes, factors).tolist(),
        "assignment": {factor: None if node is None else names[node] for factor, node in found.assignment.items()},
    }


def _kept(factors: Mapping[str, np.ndarray], mask: np.ndarray, split: str) -> np.ndarray:
    kept = mask & np.all([codes >= 0 for codes in factors.values()], axis=0)
    if not kept.any():
        raise ValueError(f"factors: expected a sample with all of them known in split {split!r}, got none; check codes")
    return kept


def _check_responsibilities(responsibilities: np.ndarray, n_cells: int) -> None:
    if responsibilities.ndim != 2 or responsibilities.shape[1] != n_cells:
        raise ValueError(
            f"responsibilities: expected shape [sample, {n_cells}], got {responsibilities.shape}; pass every cell"
        )
    if not np.isfinite(responsibilities).all():
        raise ValueError("responsibilities: expected finite values, got NaN or infinity; the fit has diverged")


def _check_alignment(n_samples: int, factors: Mapping[str, np.ndarray], mask: np.ndarray) -> None:
    shapes = {name: np.shape(codes) for name, codes in factors.items()}
    if not factors or any(shape != (n_samples,) for shape in shapes.values()):
        raise ValueError(f"factors: expected at least one, each of shape ({n_samples},), got {shapes}; align them")
    if mask.shape != (n_samples,) or mask.dtype != bool:
        raise ValueError(f"mask: expected bool ({n_samples},), got {mask.dtype} {mask.shape}; one entry per sample")


def _check_names(names: Sequence[str], outcomes: Sequence[int]) -> None:
    if len(names) != len(outcomes):
        raise ValueError(f"node_names: expected {len(outcomes)}, got {len(names)}; name each node once")


@dataclass(frozen=True)
class Found:
    """What a fit says of the samples.

    Attributes:
        responsibilities: q(N|X), cells row-major over the nodes' outcomes, `[n, C]`.
        node_names: Names of the nodes.
        joint: p(N), `[C_1, ..., C_L]`.
        adjacency: Edges, `[L, L]`, row = cause, column = effect; None where the model has no graph.
        split: `train`, `validation` or `test`, `[n]`.
        groups: Codes of the groups `[n]`, or None.
        labelled: Whose labels named the clusters, bool `[n]`, or None.
        environment: Codes of the environments, 0 = observational, `[n]`, or None where all samples are.
        outcome_names: Names of the outcomes of each node; empty: not known.
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`), or None.
    """

    responsibilities: np.ndarray
    node_names: tuple[str, ...]
    joint: np.ndarray
    adjacency: np.ndarray | None
    split: np.ndarray
    groups: np.ndarray | None = None
    labelled: np.ndarray | None = None
    environment: np.ndarray | None = None
    outcome_names: tuple[tuple[str, ...], ...] = ()
    labelling: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, fit: FitArrays) -> Found:
        """What a finished fit holds."""
        graph = fit.graph
        facts = fit.split, fit.groups, fit.labelled, fit.environment, graph.outcome_names, fit.labelling
        adjacency = None if np.isnan(graph.edge_strength).all() else graph.adjacency
        return cls(fit.responsibilities, graph.node_names, np.exp(graph.log_joint), adjacency, *facts)

    def observational(self) -> np.ndarray:
        """Samples without intervention, bool `[n]`: those that p(N) and its graph speak of."""
        return np.ones(len(self.split), dtype=bool) if self.environment is None else self.environment == 0


@dataclass(frozen=True)
class Known:
    """What is known of the samples.

    Attributes:
        factors: Integer codes `[n]` of each factor; negative: not known.
        levels: Names of the levels of each factor.
        truth: Distribution and graph of the factors, where known.
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier, where known.
    """

    factors: Mapping[str, np.ndarray]
    levels: Mapping[str, tuple[str, ...]]
    truth: Truth = field(default_factory=Truth)
    bayes_ceiling: float | None = None

    @classmethod
    def of(cls, fit: FitArrays) -> Known:
        """What came with the data of a fit."""
        truth = Truth(fit.true_joint, fit.true_adjacency)
        return cls(fit.factors, fit.factor_levels, truth, fit.bayes_ceiling).chosen(fit.scored_factors)

    def chosen(self, names: Sequence[str]) -> Known:
        """What is known of some of the factors; of all where none are named.

        Truth and ceiling are of all factors together, and go with those that are left out.
        """
        if not names or set(names) >= set(self.factors):
            return self
        kept = [name for name in self.factors if name in names]
        return Known({name: self.factors[name] for name in kept}, {name: self.levels[name] for name in kept})


def scores_of(found: Found, known: Known, seed: int = 0, effort: Effort | None = None) -> dict[str, Any]:
    """Every score that does not need the measurements; keys as in docs/evaluate.md.

    Args:
        found: The fit.
        known: The factors, at least one.
        seed: Seed of random labellings.
        effort: How long may be searched.

    Raises:
        ValueError: Shapes disagree, or there is no sample with known factors.
    """
    outcomes = found.joint.shape
    mask, split = scored_samples(found, known.factors)
    first = evaluate(
        found.responsibilities,
        outcomes,
        known.factors,
        bayes_ceiling=known.bayes_ceiling,
        node_names=found.node_names,
        mask=mask,
        split=split,
        seed=seed,
    )
    kept = np.all([codes >= 0 for codes in known.factors.values()], axis=0) & (True if mask is None else mask)
    factors = {name: codes[kept] for name, codes in known.factors.items()}
    r, generator = found.responsibilities[kept], np.random.default_rng(seed)
    return first | {
        "node_names": list(found.node_names),
        "factor_levels": {name: list(levels) for name, levels in known.levels.items()},
        "disentanglement": asdict(disentanglement(r.argmax(1), outcomes, factors, generator)),
        "calibration": _calibration(r, factors, generator),
        "factors": _of_factors(found, known, split, seed),
        **_as_named(found, known, r.argmax(1), factors, generator),
        **_graph(found, known, generator, effort or Effort()),
    }


def scored_samples(found: Found, factors: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, str]:
    """Which samples are scored, and their name: the test's, else those whose labels named nothing, else all (None)."""
    if (found.split == "test").any():
        return found.split == "test", "test"
    if found.labelled is None:
        return None, "all"
    complete = np.all([codes >= 0 for codes in factors.values()], axis=0)
    unused = complete & ~found.labelled
    return (unused, "unlabelled") if unused.any() else (None, "labelled")


def _calibration(r: np.ndarray, factors: Mapping[str, np.ndarray], generator: np.random.Generator) -> dict[str, Any]:
    cells = np.unique(np.stack(list(factors.values()), axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return _plain(calibration(r, cells, generator))


def _plain(found: Calibration) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(found).items()}


def _of_factors(found: Found, known: Known, split: str, seed: int) -> dict[str, dict[str, Any]]:
    """The clusters against every factor by itself, on all samples of the split in which it is known."""
    part = {"test": found.split == "test", "unlabelled": None if found.labelled is None else ~found.labelled}.get(split)
    there = {name: (codes >= 0) & (True if part is None else part) for name, codes in known.factors.items()}
    return {
        name: _of_factor(found.responsibilities[rows], known.factors[name][rows], np.random.default_rng(seed))
        for name, rows in there.items()
        if rows.any()
    }


def _of_factor(r: np.ndarray, codes: np.ndarray, generator: np.random.Generator) -> dict[str, Any]:
    cells, reading = r.argmax(1), read_factor(r, codes, generator)
    return {
        "n_samples": len(codes),
        "n_levels": len(np.unique(codes)),
        "accuracy": reading.accuracy,
        "guess": reading.guess,
        "cluster_accuracy": cluster_accuracy(cells, codes),
        "nmi": nmi(cells, codes),
        "ari": ari(cells, codes),
        "calibration": None if reading.calibration is None else _plain(reading.calibration),
    }


def _as_named(
    found: Found, known: Known, cells: np.ndarray, factors: Mapping[str, np.ndarray], generator: np.random.Generator
) -> dict[str, Any]:
    called = dict(zip(found.node_names, found.outcome_names, strict=False))
    return named_accuracy(
        cells, called, factors, known.levels, factors_of_nodes(found.labelling, called, known.levels), generator
    )


def _graph(found: Found, known: Known, generator: np.random.Generator, effort: Effort) -> dict[str, Any]:
    """None without a truth; `cpdag_shd` is that of the exact search where there was one, else of the edges.

    Samples under interventions follow other distributions than p(N) and do not count.
    """
    truth, rows = known.truth, found.observational()
    is_known = np.all([codes[rows] >= 0 for codes in known.factors.values()], axis=0)
    if (truth.joint is None and truth.adjacency is None) or not is_known.any():
        return {"cpdag_shd": None, "graph": None}
    levels = [len(known.levels[name]) for name in known.factors]
    graph = graph_recovery(
        found.responsibilities[rows],
        found.joint,
        found.adjacency,
        {name: codes[rows] for name, codes in known.factors.items()},
        levels,
        truth,
        generator,
        effort,
        group_weights(None if found.groups is None else found.groups[rows]),
    )
    best = graph and (graph["exact_search"] or graph["edge_strength"])
    return {"cpdag_shd": best["shd"] if best else None, "graph": graph}


# Labels of one's own, from a table: what to score a fit against.


_SAMPLE = "sample"
_MOST_LEVELS = 200


def read_labels(path: Path, n_samples: int, sample_names: Sequence[str] | None = None) -> Known:
    """Read a table with a header and a column per factor; empty entries are not known.

    With a column `sample` the rows are matched by the names of the samples (by their numbers from 0 where they have no
    names), and samples without a row are not known. Without it, there must be a row for every sample, in order.

    Args:
        path: CSV, semicolon- or tab-separated.
        n_samples: Number of samples of the run.
        sample_names: Their names, or None.

    Raises:
        ValueError: The table cannot be read or does not fit the run.
    """
    columns = read_manifest(path).columns
    names = next((column.written for column in columns if column.name.lower() == _SAMPLE), None)
    factors = [column for column in columns if column.name.lower() != _SAMPLE]
    if not factors:
        raise ValueError(f"{path}: expected a column of labels, got {_SAMPLE} alone; add one")
    rows = _rows(path, len(factors[0].entries), names, n_samples, sample_names)
    coded = {column.name: _codes(path, column) for column in factors}
    return Known(
        {name: _placed(codes, rows, n_samples) for name, (codes, _) in coded.items()},
        {name: levels for name, (_, levels) in coded.items()},
    )


def _rows(
    path: Path, n_rows: int, names: Sequence[str] | None, n_samples: int, sample_names: Sequence[str] | None
) -> np.ndarray:
    """The sample that each row is about."""
    if names is None:
        if n_rows != n_samples:
            raise ValueError(
                f"{path}: expected {n_samples} rows as the run has samples, or a column {_SAMPLE}, got {n_rows} rows"
            )
        return np.arange(n_samples)
    known = list(map(str, range(n_samples))) if sample_names is None else list(map(str, sample_names))
    position = {name: index for index, name in enumerate(known)}
    unknown = [name for name in names if name not in position]
    if unknown:
        raise ValueError(f"{path}: expected samples of the run, such as {known[0]}, got {unknown[0]!r}; correct it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"{path}: expected one row per sample, got two of {twice!r}; remove one")
    return np.array([position[name] for name in names])


def _codes(path: Path, column: Column) -> tuple[np.ndarray, tuple[str, ...]]:
    levels = tuple(sorted({entry for entry in column.entries if entry}, key=_by_number))
    if not 2 <= len(levels) <= _MOST_LEVELS:
        raise ValueError(
            f"{path}: {column.header}: expected 2 to {_MOST_LEVELS} different labels, got {len(levels)}; "
            "leave the column out"
        )
    n_known = sum(map(bool, column.entries))
    check_levels(f"{path}: {column.header}", levels, n_known, "leave the column out")
    code = {level: index for index, level in enumerate(levels)}
    return np.array([code.get(entry, -1) for entry in column.entries]), levels


def _by_number(entry: str) -> tuple[float, str]:
    """Numbers in their order, before words in theirs."""
    try:
        return float(entry), entry
    except ValueError:
        return np.inf, entry


def _placed(codes: np.ndarray, rows: np.ndarray, n_samples: int) -> np.ndarray:
    placed = np.full(n_samples, -1)
    placed[rows] = codes
    return placed
