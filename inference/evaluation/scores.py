"""All scores of a fit against what is known of its samples, as plain values: the entry `evaluation` of a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from inference.evaluation.calibration import Calibration, calibration, read_factor
from inference.evaluation.disentanglement import disentanglement
from inference.evaluation.evaluation import ari, cluster_accuracy, evaluate, nmi
from inference.evaluation.graph_recovery import Effort, Truth, graph_recovery
from inference.evaluation.named_accuracy import factors_of_nodes, named_accuracy
from inference.graphs.group_weights import group_weights
from inference.results.arrays import FitArrays

__all__ = ["Found", "Known", "scored_samples", "scores_of"]


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
