"""What is compared: numbers from the summary of a run and from the scores of `inference.evaluate`."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inference.ablation.scored_samples import HELD_OUT, LABELS, MEASURE
from inference.results.text import is_number

__all__ = ["DEFAULT_METRICS", "METRICS", "Metric", "metric_named"]


_SCORES = re.compile(r"(?:summary\.evaluation|evaluate)\.([^.]+)")
_OF_ALL = ("cpdag_shd", "graph", "bayes_ceiling", "cross_modal", "held_out_log_likelihood", "variance_explained")
"""Scores that do not depend on which samples are scored against known factors."""


@dataclass(frozen=True)
class Metric:
    """A number of a finished run.

    Attributes:
        name: How it is called in flags and files.
        label: How it is called in tables.
        paths: Where it stands, `summary.KEY.KEY`, `evaluate.KEY.KEY` or `graphs.KEY`: the first that holds numbers.
            `*` is the mean over all entries.
        better: 1: more is better, -1: less is better, 0: neither.
        digits: Decimal places.
    """

    name: str
    label: str
    paths: tuple[str, ...]
    better: int = 0
    digits: int = 3

    @property
    def is_of_labels(self) -> bool:
        """Whether it is taken over the samples that are scored against known factors; graphs are of all samples."""
        scored = (_SCORES.match(path) for path in self.paths)
        return any(found is not None and found[1] not in _OF_ALL for found in scored)

    @property
    def is_of_held_out(self) -> bool:
        """Whether it is taken over held-out samples."""
        return self.is_log_density or any("cross_modal" in path for path in self.paths)

    @property
    def is_log_density(self) -> bool:
        """Whether it is a log p(x), in units that depend on the likelihoods."""
        return any("held_out_log_likelihood" in path for path in self.paths)

    @property
    def compared_on(self) -> tuple[str, ...]:
        """What must be the same of two fits that it compares."""
        kinds = {LABELS: self.is_of_labels, HELD_OUT: self.is_of_held_out, MEASURE: self.is_log_density}
        return tuple(kind for kind, counts in kinds.items() if counts)

    def of(self, sources: Mapping[str, Any]) -> float | None:
        """The number; None where the run has none.

        Args:
            sources: The contents of `summary.json` and `evaluate.json` as `summary` and `evaluate`, and what
                `graph_distances` finds as `graphs`.
        """
        for path in self.paths:
            numbers = [float(value) for value in _found(sources, path.split(".")) if is_number(value)]
            if numbers:
                return statistics.fmean(numbers)
        return None


def _found(value: Any, keys: Sequence[str]) -> list[Any]:
    if not keys:
        return [value]
    if not isinstance(value, Mapping):
        return []
    names = list(value) if keys[0] == "*" else [keys[0]]
    return [item for name in names if name in value for item in _found(value[name], keys[1:])]


_CHANCE = "summary.evaluation.random_labelling_baseline"

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("cluster_accuracy", "cluster accuracy", ("summary.evaluation.cluster_accuracy",), 1),
        Metric("nmi", "NMI", ("summary.evaluation.nmi",), 1),
        Metric("ari", "ARI", ("summary.evaluation.ari",), 1),
        Metric("node_accuracy_mean", "node accuracy, mean", ("summary.evaluation.node_accuracy_mean",), 1),
        Metric("node_accuracy_worst", "node accuracy, worst", ("summary.evaluation.node_accuracy_worst",), 1),
        Metric("named_accuracy_worst", "named accuracy, worst", ("summary.evaluation.named_accuracy_worst",), 1),
        Metric("held_out_log_likelihood", "held-out log p(x)", ("summary.held_out_log_likelihood.per_sample",), 1, 2),
        Metric(
            "held_out_bound", "held-out bound", ("summary.held_out_log_likelihood.collapsed_bound.per_sample",), 1, 2
        ),
        Metric(
            "held_out_as_trained",
            "held-out log p(x), prior of the training",
            ("summary.objective.latent_prior.per_sample", "summary.held_out_log_likelihood.per_sample"),
            1,
            2,
        ),
        # No direction: a larger β, or a looser bound, has other numbers of the same model.
        Metric("objective", "objective", ("summary.objective.per_sample",), 0, 2),
        Metric("cross_modal_r2", "cross-modal R²", ("evaluate.cross_modal.*.r2",), 1),
        Metric("cpdag_shd", "SHD, best assignment", ("summary.evaluation.cpdag_shd",), -1, 2),
        Metric("reported_shd", "SHD, class of the run", ("graphs.reported",), -1, 2),
        Metric("trained_shd", "SHD, trained graph", ("graphs.trained",), -1, 2),
        Metric("posthoc_shd", "SHD, learner after the fit", ("graphs.posthoc",), -1, 2),
        Metric("linear_scm_shd", "SHD, linear model", ("graphs.linear_scm",), -1, 2),
        Metric("node_accuracy_chance", "node accuracy, mean, random names", (f"{_CHANCE}.mean",)),
        Metric("node_accuracy_worst_chance", "node accuracy, worst, random names", (f"{_CHANCE}.worst",)),
        Metric("entropy", "entropy", ("summary.clusters.entropy",)),
        Metric("n_occupied", "occupied cells", ("summary.clusters.n_occupied",), 0, 1),
        Metric("epochs", "epochs", ("summary.epochs",), 0, 1),
        Metric("seconds", "seconds", ("summary.seconds.total",), -1, 1),
    )
}
"""By name. Any other number of `summary.json` or `evaluate.json` is named by its path."""

DEFAULT_METRICS = (
    "cluster_accuracy",
    "nmi",
    "ari",
    "named_accuracy_worst",
    "held_out_log_likelihood",
    "objective",
    "cross_modal_r2",
    "reported_shd",
    "trained_shd",
    "posthoc_shd",
    "linear_scm_shd",
    "entropy",
    "seconds",
)


def metric_named(name: str) -> Metric:
    """One of `METRICS`, or that at a path; a path after `-` is one of which less is better, after `+` more.

    Raises:
        ValueError: It is neither.
    """
    if name in METRICS:
        return METRICS[name]
    path = name.lstrip("+-")
    if path.split(".")[0] in ("summary", "evaluate") and "." in path:
        better = {"+": 1, "-": -1}.get(name[0], 0)
        return Metric(path, path.partition(".")[2], (path,), better)
    raise ValueError(
        f"metrics: expected {', '.join(METRICS)}, or a path such as summary.clusters.effective_number, got {name!r}; "
        "keys are in docs/run_folder.md and docs/evaluate.md"
    )
