"""Held-out log p(x) by K refits, each of which leaves a part of the groups (or samples) out."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from causalpima.inference.analyses.log_evidence import log_evidence
from causalpima.inference.data.multimodal import MultimodalData, sample_subset
from causalpima.inference.data.tensors import fingerprint
from causalpima.inference.findings.collect import standard_error
from causalpima.inference.findings.verdicts import Finding, Line
from causalpima.inference.fit import fit
from causalpima.inference.result import rebuild_result
from causalpima.inference.store.files import make_folder, write_json
from causalpima.inference.store.input_files import read_json
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.user_code import source_hashes

__all__ = [
    "FoldPlan",
    "assign_folds",
    "folds_finding",
    "run_folds",
]


_ROWS = 8192
_STREAM = 7


@dataclass(frozen=True)
class FoldPlan:
    """What is refitted.

    Attributes:
        data: All samples of the run.
        config: Its settings; every refit uses them, with no samples kept for a test.
        n: Number of folds, K.
        draws: Draws of Z per left-out sample.
        seed: Seed of folds and draws.
        folder: Where every finished fold leaves its file, `fold-0.json`, ...: those that are there are not repeated.
        jobs: How many refits run at once, each in a process.
    """

    data: MultimodalData
    config: FitConfig
    n: int
    draws: int
    seed: int
    folder: Path
    jobs: int = 1

    @property
    def fingerprint(self) -> str:
        """Of all that a fold's result depends on."""
        settings = self.config.fingerprint(fingerprint(self.data), source_hashes(self.config.to_dict()))
        return f"{settings}-{self.n}-{self.draws}-{self.seed}"

    def file(self, fold: int) -> Path:
        """The file of a fold."""
        return self.folder / f"fold-{fold}.json"


def assign_folds(n_samples: int, groups: np.ndarray | None, n_folds: int, seed: int) -> np.ndarray:
    """Fold of each sample, `[n]`; groups stay whole, and folds have as many of them as each other, give or take one.

    Args:
        n_samples: Number of samples.
        groups: Codes of the groups, `[n]`, or None.
        n_folds: K.
        seed: Of the order.

    Raises:
        ValueError: Fewer than two folds, or more than there are groups or samples.
    """
    names, codes = np.unique(np.arange(n_samples) if groups is None else groups, return_inverse=True)
    if not 2 <= n_folds <= len(names):
        unit = "samples" if groups is None else "groups"
        raise ValueError(f"folds: expected 2 to {len(names)}, the number of {unit}, got {n_folds}")
    order = np.random.default_rng((seed, _STREAM)).permutation(len(names))
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % n_folds
    return fold[codes]


def run_folds(plan: FoldPlan, done: Callable[[int], object] = lambda _: None) -> list[dict[str, Any]]:
    """Refit and score every fold that has no file yet.

    Args:
        plan: What to do.
        done: Called with the number of every fold that ended.

    Returns:
        Per fold `fold`, `status`, `n_samples`, `samples`, `log_evidence`; those of a diverged refit are empty.

    Raises:
        ValueError: A part of the samples can't be fitted with these settings.
    """
    assign_folds(plan.data.n_samples, plan.data.groups, plan.n, plan.seed)
    make_folder(plan.folder)
    missing = [fold for fold in range(plan.n) if _read(plan, fold) is None]
    for fold in _in_processes(plan, missing) if plan.jobs > 1 and len(missing) > 1 else _one_by_one(plan, missing):
        done(fold)
    found = [_read(plan, fold) for fold in range(plan.n)]
    return [entry for entry in found if entry is not None]


def _read(plan: FoldPlan, fold: int) -> dict[str, Any] | None:
    """What a fold left, if it was of the same plan."""
    try:
        found = read_json(plan.file(fold), plan.folder)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("fingerprint") == plan.fingerprint else None


def _one_by_one(plan: FoldPlan, folds: list[int]) -> Iterator[int]:
    return (_run_fold(plan, fold) for fold in folds)


def _in_processes(plan: FoldPlan, folds: list[int]) -> Iterator[int]:
    context = multiprocessing.get_context("spawn")
    jobs = min(plan.jobs, len(folds))
    with ProcessPoolExecutor(jobs, context, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        waiting = [pool.submit(_run_fold, plan, fold) for fold in folds]
        try:
            for ended in as_completed(waiting):
                yield ended.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _run_fold(plan: FoldPlan, fold: int) -> int:
    left_out = np.flatnonzero(assign_folds(plan.data.n_samples, plan.data.groups, plan.n, plan.seed) == fold)
    kept = np.setdiff1d(np.arange(plan.data.n_samples), left_out)
    config = replace(plan.config, training=replace(plan.config.training, test_fraction=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a collapse, which the status tells
        result = fit(sample_subset(plan.data, kept), config=config)
    evidence: list[float] = []
    if result.arrays is not None:
        evidence = log_evidence(
            rebuild_result(result), sample_subset(plan.data, left_out), plan.draws, plan.seed
        ).tolist()
    entry = {"fold": fold, "status": result.status, "n_samples": len(left_out), "samples": left_out.tolist()}
    write_json(plan.file(fold), {"fingerprint": plan.fingerprint, **entry, "log_evidence": evidence})
    return fold


def folds_finding(found: list[dict[str, Any]], groups: np.ndarray | None) -> Finding:
    """Mean over all left-out samples; the standard error takes groups as independent.

    Args:
        found: As `run_folds` returns it.
        groups: Codes of the groups of all samples, or None.
    """
    values = np.concatenate([np.array(entry["log_evidence"], dtype=np.float64) for entry in found])
    samples = np.concatenate([entry["samples"] for entry in found if entry["log_evidence"]] or [[]]).astype(int)
    statuses = [entry["status"] for entry in found]
    mean = float(values.mean()) if len(values) else None
    error = standard_error(values, samples if groups is None else groups[samples]) if len(values) > 1 else None
    by_fold = [float(np.mean(entry["log_evidence"])) if entry["log_evidence"] else None for entry in found]
    plain = {"per_sample": mean, "standard_error": error, "by_fold": by_fold, "statuses": statuses, "n": len(found)}
    return Finding((_line(plain, "samples" if groups is None else "groups"),), {"folds": plain})


def _line(found: Mapping[str, Any], unit: str) -> Line:
    key, name = "folds", f"log p(x), {found['n']} folds of {unit}"
    failed = [status for status in found["statuses"] if status != "ok"]
    if found["per_sample"] is None:
        return Line(key, name, "all refits diverged", "fails", "a lower --training.learning_rate")
    text = f"{found['per_sample']:.2f} ± {found['standard_error'] or float('nan'):.2f} nats per left-out sample"
    if failed:
        text = f"{text}; refits that failed: {', '.join(failed)}"
        return Line(key, name, text, "unclear", "the fit depends on which samples there are: take more of them")
    known = [value for value in found["by_fold"] if value is not None]
    return Line(key, name, f"{text} (folds {min(known):.2f} to {max(known):.2f})", "passes")
