"""One record per fit: how it ended, and its numbers. Fits that failed, and cells that are refused, are records, too."""

from __future__ import annotations

import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from causalpima.inference.ablation.plan import Fit, Plan
from causalpima.inference.findings.graph import left_out_sentence
from causalpima.inference.findings.names import variable_names
from causalpima.inference.graphs.dags import cpdag, permute_nodes, structural_hamming_distance
from causalpima.inference.store.files import make_folder, to_json, write_text
from causalpima.inference.store.input_files import MOST_TEXT, read_bytes, read_json
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.text import is_number, printable

__all__ = [
    "DEFAULT_METRICS",
    "HELD_OUT",
    "LABELS",
    "MEASURE",
    "METRICS",
    "STATUSES",
    "Earlier",
    "Ended",
    "Metric",
    "Record",
    "absent_learners",
    "absent_scores",
    "graph_distances",
    "metric_named",
    "origin_of",
    "read_records",
    "record_of_fit",
    "records_of",
    "run_fits",
    "samples_of",
    "scored_in_words",
    "start_process",
    "write_records",
]


# Which samples the scores of a fit are of, so that two fits are compared on the same ones alone.
#
# What a fit says in words, `60 unlabelled samples`, is the same of different samples of the same number: a hash of
# their
# places and known factors tells these apart.


LABELS, HELD_OUT, MEASURE = "labels", "held_out", "measure"
"""What scores are of: samples with known factors; held-out samples; of a log-density, the measure it is taken in."""

_OF_COUNTS = ("bernoulli", "categorical", "poisson", "negative_binomial")
_DIGITS = 12


def scored_in_words(summary: Mapping[str, Any]) -> str:
    """`60 unlabelled samples`: how many are scored against known factors; empty where none are.

    Args:
        summary: That of the run.
    """
    found = summary.get("evaluation") or {}
    split = {"all": "samples"}.get(found.get("split", ""), f"{found.get('split')} samples")
    return f"{found['n_samples']} {split}" if "n_samples" in found else ""


def samples_of(folder: Path, summary: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the samples that are scored, `LABELS` and `HELD_OUT`, and `MEASURE` in words; each where it is known.

    Args:
        folder: The run folder, with `posterior.nc`.
        summary: Its summary.
    """
    path = folder / "posterior.nc"
    parts = {
        LABELS: (summary.get("evaluation") or {}).get("split"),
        HELD_OUT: (summary.get("held_out_log_likelihood") or {}).get("split"),
    }
    factors = tuple(variable_names((summary.get("evaluation") or {}).get("factor_levels") or {}).values())
    found = _hashes(path, path.stat().st_mtime_ns, *parts.values(), factors) if path.is_file() else ("", "")
    hashes = {name: text for name, text in zip(parts, found, strict=True) if text}
    return hashes | {MEASURE: _measure(summary)}


def _measure(summary: Mapping[str, Any]) -> str:
    likelihoods = {name: entry.get("likelihood") for name, entry in summary["modalities"].items()}
    return ", ".join(f"{name} {'mass' if each in _OF_COUNTS else 'density'}" for name, each in likelihoods.items())


@lru_cache(maxsize=4096)
def _hashes(
    path: Path, changed: int, labels: str | None, held_out: str | None, factors: tuple[str, ...]
) -> tuple[str, str]:
    """Of the samples with labels and of those that are held out; `changed` tells a file from an earlier one."""
    try:
        constant = read_posterior(path, path.parent, ("constant_data",))["constant_data"].to_dataset()
        scored = {f"factor_{name}" for name in factors} or set(_factors(constant))
        constant = constant.drop_vars([name for name in _factors(constant) if name not in scored])
        return _hash(constant, _scored(constant, labels)), _hash(constant, _in_split(constant, held_out))
    except (OSError, ValueError, KeyError):
        return "", ""


def _scored(constant: xr.Dataset, part: str | None) -> np.ndarray:
    """As `inference.analyses.scores.scored_samples` chooses them, bool `[n]`."""
    known = np.all([codes >= 0 for codes in _factors(constant).values()] or [np.zeros(1, dtype=bool)], axis=0)
    if part == "unlabelled":
        return known & ~constant["labelled"].to_numpy().astype(bool)
    return known if part in ("all", "labelled") else known & _in_split(constant, part)


def _in_split(constant: xr.Dataset, part: str | None) -> np.ndarray:
    found: np.ndarray = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()] == part
    return found


def _factors(constant: xr.Dataset) -> dict[str, np.ndarray]:
    return {str(name): constant[name].to_numpy() for name in constant.data_vars if str(name).startswith("factor_")}


def _hash(constant: xr.Dataset, rows: np.ndarray) -> str:
    """Of names and places of the samples, and of their factors; empty where there are no samples."""
    if not rows.any():
        return ""
    digest = hashlib.sha256(repr([*map(str, constant["sample"].to_numpy()[rows])]).encode())
    digest.update(np.flatnonzero(rows).astype(np.int64).tobytes())
    for name, codes in sorted(_factors(constant).items()):
        digest.update(repr([name, *_levels(constant, name, codes[rows])]).encode())
    return digest.hexdigest()[:_DIGITS]


def _levels(constant: xr.Dataset, factor: str, codes: np.ndarray) -> list[str]:
    """By their names: a file may number the levels in another order than a generator does."""
    names = constant.get(f"level_{factor.removeprefix('factor_')}")
    return [str(code) if names is None or code < 0 else str(names.to_numpy()[code]) for code in codes.tolist()]


# What is compared: numbers from the summary of a run and from the scores of `inference.evaluate`.


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


# How far the graphs that a run shows are from the true one: each of them on its own, where the nodes have a meaning.
#
# A run can have several graphs: the class of the search over its named nodes, the graph that was trained, that of a
# learner after the fit, the edges that a linear model claims. Distances are structural Hamming distances between
# classes of equivalent graphs. A node stands at the factor that its labels came from, or whose name it bears, so that
# names that are exchanged are not put right; where neither tells all nodes, at the one that evaluation assigns it to.


def graph_distances(summary: Mapping[str, Any]) -> dict[str, int]:
    """`reported`, `trained`, `posthoc`, `linear_scm`, each where there is one; nothing where nodes have no meaning.

    Args:
        summary: That of the run.
    """
    evaluation, graph = summary.get("evaluation") or {}, summary.get("graph") or {}
    scored = evaluation.get("graph") or {}
    true, reported = scored.get("true_cpdag"), graph.get("equivalence_class") or graph.get("posterior")
    if true is None or reported is None:
        return {}
    order = _order(list(summary["nodes"]), list(evaluation.get("factor_levels") or {}), summary)
    if order is None:
        return {}
    found = {"reported": reported, "posthoc": graph.get("posthoc")}
    classes = {name: np.array(entry["cpdag"]) for name, entry in found.items() if entry and entry.get("cpdag")}
    if graph.get("linear_scm"):
        classes["linear_scm"] = cpdag(np.array(graph["linear_scm"]["adjacency"]))
    if scored.get("edge_strength"):
        classes["trained"] = cpdag(np.array(graph["adjacency"]))
    truth = np.array(true)
    return {name: structural_hamming_distance(permute_nodes(own, order), truth) for name, own in classes.items()}


def _order(nodes: list[str], factors: list[str], summary: Mapping[str, Any]) -> list[int] | None:
    """The node of every factor; None where they do not correspond one to one."""
    variables = ((summary.get("labelling") or {}).get("details") or {}).get("variables") or {}
    named = {variables.get(node, node): node for node in nodes}
    assigned = summary["evaluation"].get("assignment") or {}
    whole = [each for each in (named, assigned) if set(each) == set(factors) and set(each.values()) == set(nodes)]
    return [nodes.index(whole[0][factor]) for factor in factors] if whole else None


STATUSES = ("ok", "collapsed", "diverged", "refused", "error", "unfinished")
"""How a fit ends: the three of `summary.json`; its settings or its data were refused; its process failed; not yet."""

_REFUSED_STATUS = 2
_FAILURES = ("refused", "error")


@dataclass(frozen=True)
class Record:
    """A fit.

    Attributes:
        cell: Name of the cell.
        seed: The seed.
        status: One of `STATUSES`.
        reason: Why it is not ok; empty where it is.
        flags: What distinguishes the cell.
        run: Run folder, relative to that of the ablation.
        metrics: Numbers by name of the metric; None where there is none.
        scored_on: The samples that scores against known factors are of, in words; empty where there are none.
        samples: Hashes of the samples that scores are of (`samples_of`); empty in files of earlier versions.
    """

    cell: str
    seed: int
    status: str
    reason: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    scored_on: str = ""
    samples: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As a line of `records.jsonl` has it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


Earlier = Mapping[tuple[str, int], Record]
"""Fits of earlier sessions whose process failed, by cell and seed: their exit status is nowhere else."""


def records_of(
    plan: Plan, metrics: Sequence[Metric], ended: Mapping[Path, int], earlier: Earlier | None = None
) -> tuple[Record, ...]:
    """The records of all cells and seeds, in order.

    Args:
        plan: The plan.
        metrics: What is compared.
        ended: Exit statuses of the processes that ended, by run folder.
        earlier: What is told of fits that failed before, and did not run again.
    """
    records = []
    for planned in plan.cells:
        for seed in plan.seeds:
            fit = plan.fit(planned, seed)
            if planned.refusal is None:
                record = record_of_fit(fit, planned.cell.flags, metrics, ended.get(fit.folder), plan.folder)
                record = _or_earlier(record, earlier or {})
            else:
                record = Record(planned.cell.name, seed, "refused", planned.refusal, planned.cell.flags)
            records.append(record)
    return tuple(records)


def _or_earlier(record: Record, earlier: Earlier) -> Record:
    """The failure of the same settings in an earlier session, where the fit has not run since."""
    before = earlier.get((record.cell, record.seed))
    is_same = record.status == "unfinished" and before is not None and before.flags == record.flags
    return before if before is not None and is_same else record


def record_of_fit(
    fit: Fit, flags: Mapping[str, str], metrics: Sequence[Metric], status: int | None, root: Path
) -> Record:
    """The record of a fit, from its folder.

    Args:
        fit: The fit.
        flags: What distinguishes its cell.
        metrics: What is compared.
        status: Exit status of its process; None: none ran.
        root: Folder of the ablation.
    """
    run = str(fit.folder.relative_to(root))
    if not RunFolder(fit.folder).is_complete:
        return Record(fit.cell, fit.seed, *_failure(fit, status), flags, run)
    summary = RunFolder(fit.folder).read_summary()
    sources = {"summary": summary, "evaluate": _scores(fit.folder), "graphs": graph_distances(summary)}
    has_numbers = summary["status"] != "diverged"  # its seconds are those until it failed
    numbers = {metric.name: metric.of(sources) if has_numbers else None for metric in metrics}
    scored = (scored_in_words(summary), samples_of(fit.folder, summary)) if has_numbers else ()
    return Record(fit.cell, fit.seed, summary["status"], _reason(summary), flags, run, numbers, *scored)


def _reason(summary: Mapping[str, Any]) -> str:
    if summary["status"] == "collapsed":
        clusters = summary["clusters"]
        return f"{clusters['n_occupied']} of {clusters['n_requested']} cells are occupied"
    return str(summary.get("reason", ""))


def _failure(fit: Fit, status: int | None) -> tuple[str, str]:
    if status is None:
        return "unfinished", "it has not run to its end"
    last = _last_line(fit.log)
    if status == _REFUSED_STATUS:
        return "refused", last.removeprefix("svi: error: ")
    if status < 0:
        return (
            "error",
            f"its process was killed by signal {-status}, perhaps for want of memory: try fewer --jobs",
        )
    return "error", f"{last} (exit status {status})"


def _last_line(log: Path) -> str:
    lines = _text(log).split("\n")
    return next((" ".join(line.split()) for line in reversed(lines) if line.strip()), "it said nothing")


def _text(path: Path) -> str:
    """What stands in a file of the ablation; nothing where it is not there, or lies elsewhere."""
    try:
        return read_bytes(path, path.parent, MOST_TEXT).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _scores(folder: Path) -> Any:
    try:
        return read_json(folder / "evaluate.json", folder)
    except (OSError, ValueError):
        return {}


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a line of JSON per record."""
    write_text(path, "".join(to_json(record.to_dict(), indent=None) + "\n" for record in records))


def read_records(path: Path) -> Earlier:
    """The fits whose process failed; none where the file is not there. Damaged lines do not count."""
    records = filter(None, map(_record_from, _text(path).splitlines()))
    return {(r.cell, r.seed): r for r in records if r.status in _FAILURES and r.run}


def _record_from(line: str) -> Record | None:
    try:
        record = Record(**json.loads(line))
        return record if all(isinstance(value, str) for value in (record.cell, record.status, record.run)) else None
    except (ValueError, TypeError, RecursionError):
        return None


# Fits in processes of their own, some at once; each with one thread, so that cores are not fought over.


_PAUSE = 0.05
_PATIENCE = 30.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Ended(NamedTuple):
    """A fit that ended, with the exit status of its process and the seconds it took."""

    fit: Fit
    status: int
    seconds: float


def start_process(fit: Fit, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a fit; what it prints goes to its log.

    It is not in our process group: Ctrl-C reaches this process alone, which tells the fits to stop.

    Args:
        fit: The fit.
        command: Arguments of the Python interpreter.
    """
    make_folder(fit.log.parent)
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    with fit.log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
            start_new_session=True,
        )


def run_fits(fits: Sequence[Fit], n_jobs: int, start: Callable[[Fit], subprocess.Popen[bytes]]) -> Iterator[Ended]:
    """Run fits, `n_jobs` at once; yields each as it ends.

    Whatever ends this early stops the processes; they save all epochs that they finished.

    Args:
        fits: The fits, in the order in which they are started.
        n_jobs: Most processes at once.
        start: Starts the process of a fit.
    """
    waiting, running = list(fits), dict[Fit, tuple[subprocess.Popen[bytes], float]]()
    try:
        while waiting or running:
            while waiting and len(running) < n_jobs:
                fit = waiting.pop(0)
                running[fit] = (start(fit), time.monotonic())
            for fit, (process, began) in list(running.items()):
                if process.poll() is not None:
                    del running[fit]
                    yield Ended(fit, process.returncode, time.monotonic() - began)
            time.sleep(_PAUSE)
    finally:
        _stop([process for process, _ in running.values()])


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
        process.kill()
        process.wait()


# Cells whose classical learner (`model.graph=posthoc:...`) did not run after the fit, and why.


def absent_learners(plan: Plan) -> tuple[str, ...]:
    """A sentence per cell and reason, with the seeds where it holds; of fits that are finished.

    Args:
        plan: The plan, whose run folders are read.
    """
    seeds: dict[tuple[str, str], list[int]] = {}
    for fit in plan.fits:
        reason = left_out_sentence(RunFolder(fit.folder).read_summary()) if RunFolder(fit.folder).is_complete else ""
        if reason:
            seeds.setdefault((fit.cell, reason), []).append(fit.seed)
    return tuple(f"{cell}, seed {', '.join(map(str, found))}: {reason}" for (cell, reason), found in seeds.items())


# Fits that are finished but not scored by `inference.evaluate`: their numbers would be missing without a word.


def absent_scores(plan: Plan, scored: Collection[str]) -> tuple[str, ...]:
    """A sentence per cell of which finished fits have no `evaluate.json`; those that diverged cannot have one.

    Args:
        plan: The plan, whose run folders are read.
        scored: Names of the cells whose fits are to be scored.
    """
    seeds: dict[str, list[int]] = {}
    for fit in plan.fits:
        folder = RunFolder(fit.folder)
        is_finished = folder.is_complete and folder.posterior.is_file()
        if fit.cell in scored and is_finished and not (fit.folder / "evaluate.json").is_file():
            seeds.setdefault(fit.cell, []).append(fit.seed)
    return tuple(
        f"{cell}, seed {', '.join(map(str, found))}: finished, but not scored by inference.evaluate, so that numbers "
        "of it are missing; their logs may say why, and the same command again scores them."
        for cell, found in seeds.items()
    )


# What the fits of an ablation are of: data set, number of samples, epochs. It stands above every table.


def origin_of(plan: Plan) -> tuple[str, ...]:
    """Short facts on the data and the length of the fits; what no finished fit tells is left out.

    Args:
        plan: The plan.
    """
    settings = [planned.settings for planned in plan.cells if planned.settings is not None]
    return (*_data(settings), *_samples(plan), *_epochs(settings))


def _data(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """`data lattices`; of cells that differ by their data, all names."""
    names = [each.get("dataset") or Path(str(each.get("data") or "")).name for each in settings]
    return [f"data {printable(', '.join(found))}"] if (found := [name for name in dict.fromkeys(names) if name]) else []


def _samples(plan: Plan) -> list[str]:
    """Of the first finished fit of every cell: `91 samples`, `91 to 500 samples`."""
    done = {fit.cell: folder for fit in reversed(plan.fits) if (folder := RunFolder(fit.folder)).is_complete}
    counts = sorted({count for each in done.values() if (count := each.read_summary().get("n_samples")) is not None})
    return [f"{_from_to(counts)} samples"] if counts else []


def _epochs(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Those of the training at most, since a fit may stop early: `20 epochs of training at most`."""
    found = sorted({each["training"]["epochs"] for each in settings if "training" in each})
    return [f"{_from_to(found)} epochs of training at most"] if found else []


def _from_to(numbers: Sequence[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
