"""All controls of a run, one after the other, and what they found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from inference.checks.controls import (
    Contribution,
    Refits,
    Sharing,
    bootstrap,
    contribution,
    independent_nodes,
    sharing,
)
from inference.checks.embedded_run import EmbeddedRun
from inference.checks.label_control import LabelAgreement, permuted_labels
from inference.checks.refit import edges_not_searched, joined
from inference.checks.resampling import unseen_cells
from inference.labelling.labels import UNKNOWN

__all__ = ["Checked", "check_embedded"]

_FEWEST_BATCHES = 5
_SHARE_OF_SHUFFLES = 5


@dataclass(frozen=True)
class Checked:
    """What the controls found.

    Attributes:
        run: What was checked.
        repetitions: Repetitions of resampling.
        seed: Seed.
        skipped: Why a control was left out, by its name: `edges`, `null`, `modalities`, `labels`, `groups`.
        edges: Which nodes the procedure joins in the run's own cells, bool `[L, L]`; None where not searched.
        null: Samples with independent nodes; None where skipped.
        bootstraps: By what is drawn: `samples`, `groups`, or a covariate.
        intact: Several modalities, none permuted: the same procedure on the samples as they are.
        permuted: Each modality permuted against the others.
        shuffled: All modalities shuffled against each other.
        sharing: Whether the modalities tell of each other.
        labels: Permuted labels; None where no labels name the clusters, or they are not known.
        seconds: How long it took.
    """

    run: EmbeddedRun
    repetitions: int
    seed: int
    skipped: Mapping[str, str]
    edges: np.ndarray | None
    null: Refits | None
    bootstraps: Mapping[str, Refits]
    intact: Contribution | None
    permuted: Mapping[str, Contribution]
    shuffled: Contribution | None
    sharing: Sharing | None
    labels: LabelAgreement | None
    seconds: float


def check_embedded(
    run: EmbeddedRun,
    repetitions: int = 20,
    seed: int = 0,
    codes: np.ndarray | None = None,
    done: Callable[[], object] = lambda: None,
) -> Checked:
    """Run every control that the run has data for.

    Args:
        run: The run.
        repetitions: Repetitions of resampling; of shuffles of modalities a fifth of them.
        seed: Seed of everything random.
        codes: Outcomes of the nodes by the labels that name the clusters, `[n, L]`, or None.
        done: Called after every refit.

    Raises:
        ValueError: Numbers out of range.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions: expected at least 1, got {repetitions}")
    began, skipped = time.perf_counter(), _skipped(run, codes)
    edges = "edges" not in skipped
    several = "modalities" not in skipped
    fewer = max(1, repetitions // _SHARE_OF_SHUFFLES)
    return Checked(
        run=run,
        repetitions=repetitions,
        seed=seed,
        skipped=skipped,
        edges=joined(run, run.responsibilities, run.weights) if edges else None,
        null=None if "null" in skipped else independent_nodes(run, repetitions, seed, done),
        bootstraps={name: bootstrap(run, units, repetitions, seed, edges, done) for name, units in _units(run).items()},
        intact=contribution(run, (), 1, seed, False, done) if several else None,
        permuted={name: contribution(run, (name,), fewer, seed, False, done) for name in run.present if several},
        shuffled=contribution(run, tuple(run.present), fewer, seed, edges and run.is_told_once, done)
        if several
        else None,
        sharing=sharing(run, seed) if several else None,
        labels=None
        if codes is None or "labels" in skipped
        else permuted_labels(run.responsibilities, codes, run.outcomes, seed, run.groups),
        seconds=time.perf_counter() - began,
    )


def _skipped(run: EmbeddedRun, codes: np.ndarray | None) -> dict[str, str]:
    reasons = {
        "edges": edges_not_searched(run),
        "null": edges_not_searched(run) or _no_null(run),
        "modalities": _no_shuffles(run),
        "labels": None if codes is not None and (codes != UNKNOWN).any() else "no labels name the clusters",
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _no_null(run: EmbeddedRun) -> str | None:
    unseen = unseen_cells(run)
    if not len(unseen):
        return None
    return f"{len(unseen)} clusters that independent nodes would fill are empty: nobody knows what they look like"


def _no_shuffles(run: EmbeddedRun) -> str | None:
    if len(run.present) < 2:
        return "there is one modality"
    if not run.visible and not run.experts:
        return "the samples of the run are not known, which the encoders would have to see again"
    return None


def _units(run: EmbeddedRun) -> dict[str, np.ndarray | None]:
    """What is drawn: samples, or groups in their place, and covariates of enough levels."""
    first: dict[str, np.ndarray | None] = {"samples": None} if run.groups is None else {"groups": run.groups}
    return first | {name: codes for name, codes in run.batches.items() if len(np.unique(codes)) >= _FEWEST_BATCHES}
