"""Cluster read-out on made-up embeddings like those of the circles data: accuracy beside plain mixtures, time, entropy.

    python benchmarks/read_out.py --seeds 5 --json read_out.json

Every data set draws the factors of the circles data (hue, radius, shift) and maps each hue to a strip of its own in the
plane: bent, of changing width, unevenly stretched. Clusters are curved and unequal, and no cell is lost by the map, so
that the Bayes ceiling is that of the factors. `spearman` is the rank correlation of entropy and accuracy over mixtures
that are read out singly (one size, one start), within each data set and pooled: near -1, entropy tells good from bad.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm, spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from causalpima.inference.clusters.clustering import default_sizes, read_out

N_CELLS = 8
RADIUS_SCALE, SHIFT_SCALE = 0.5, 0.5**0.5

# p(h, r, s) of SCIENCE.md, section 7.1: independent nodes, and graphs with edges.
_R_GIVEN_H = {"independent": (0.4, 0.4), "chain": (0.3, 0.75), "collider": (0.4, 0.4)}
_S_GIVEN_HR = {
    "independent": ((0.3, 0.3), (0.3, 0.3)),
    "chain": ((0.2, 0.7), (0.2, 0.7)),
    "collider": ((0.15, 0.5), (0.4, 0.85)),
}
TRUTHS = tuple(_R_GIVEN_H)


@dataclass(frozen=True)
class Sample:
    """An embedding `[n, 2]`, the true cell of each row, and the accuracy of the Bayes-optimal classifier on them."""

    embedding: np.ndarray
    cell: np.ndarray
    bayes_ceiling: float


@dataclass(frozen=True)
class Record:
    """What one data set gave."""

    truth: str
    seed: int
    diagonal: float
    full: float
    read_out: float
    bayes_ceiling: float
    entropy: float
    size: int
    mixtures: list[tuple[float, float]]
    spearman: float
    seconds: float
    cpu_seconds: float


def curved_clusters(truth: str, n_samples: int, seed: int) -> Sample:
    """Draw factors, and map them to the plane, one strip per hue."""
    generator = np.random.default_rng(seed)
    h, r, s = _nodes(truth, n_samples, generator)
    radius = generator.normal(4 + 2 * h + r, RADIUS_SCALE)
    shift = generator.normal(-6 + 6 * r + 3 * s, SHIFT_SCALE)
    strips = [_strip(radius - 4 - 2 * hue, (shift + 6) / 9, hue, generator) for hue in (0, 1)]
    embedding = np.where(h[:, None] == 0, *strips) + generator.normal(0, 0.01, (n_samples, 2))
    cell = 4 * h + 2 * r + s
    return Sample(embedding, cell, _bayes_accuracy(truth, cell, radius, shift))


def _nodes(truth: str, n_samples: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    h = (generator.random(n_samples) < 0.5).astype(int)
    r = (generator.random(n_samples) < np.array(_R_GIVEN_H[truth])[h]).astype(int)
    s = (generator.random(n_samples) < np.array(_S_GIVEN_HR[truth])[h, r]).astype(int)
    return h, r, s


def _strip(across: np.ndarray, along: np.ndarray, side: int, generator: np.random.Generator) -> np.ndarray:
    """A strip of the plane: an arc of random bend, whose width and density change along it; one half-plane each."""
    bend = generator.choice([-1, 1]) * generator.uniform(0.6, 1.8)
    stretch, taper = generator.uniform(-0.35, 0.35), generator.uniform(-0.8, 0.8)
    width = generator.uniform(0.15, 0.5) * np.exp(taper * along)
    t = 1.2 * (along + stretch * along * (along - 1))
    reach = width * np.tanh(across - 0.5)
    start = generator.uniform(-0.5, 0.5) + np.pi * side
    heading = start + bend * t
    arc = np.stack([np.sin(heading) - np.sin(start), np.cos(start) - np.cos(heading)], axis=1) / bend
    normal = np.stack([-np.sin(heading), np.cos(heading)], axis=1)
    offset = np.array([0.35 if side == 0 else -0.35, 0.0])
    return offset + arc + reach[:, None] * normal


def _bayes_accuracy(truth: str, cell: np.ndarray, radius: np.ndarray, shift: np.ndarray) -> float:
    """Accuracy of argmax_rs p(r, s | hue, radius, shift); the hue is seen."""
    h, r, s = np.unravel_index(np.arange(N_CELLS), (2, 2, 2))
    p_r, p_s = np.array(_R_GIVEN_H[truth])[h], np.array(_S_GIVEN_HR[truth])[h, r]
    log_prior = np.log(np.where(r, p_r, 1 - p_r)) + np.log(np.where(s, p_s, 1 - p_s))
    log_posterior = (
        log_prior
        + norm.logpdf(radius[:, None], 4 + 2 * h + r, RADIUS_SCALE)
        + norm.logpdf(shift[:, None], -6 + 6 * r + 3 * s, SHIFT_SCALE)
    )
    log_posterior[h[None] != (cell // 4)[:, None]] = -np.inf
    return float((log_posterior.argmax(axis=1) == cell).mean())


def accuracy(cell: np.ndarray, found: np.ndarray) -> float:
    """Share of samples in the right cell under the best bijection."""
    counts = np.zeros((N_CELLS, N_CELLS))
    np.add.at(counts, (found, cell), 1)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(cell))


def plain_mixture(sample: Sample, covariance: str, seed: int) -> float:
    """Accuracy of a Gaussian mixture with one component per cell, five starts."""
    points = StandardScaler().fit_transform(sample.embedding)
    mixture = GaussianMixture(N_CELLS, covariance_type=covariance, n_init=5, reg_covar=1e-4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return accuracy(sample.cell, mixture.fit_predict(points))


def single_mixtures(sample: Sample, seed: int, n_starts: int) -> list[tuple[float, float]]:
    """Entropy and accuracy of the read-out from one mixture each, over sizes and starts."""
    pairs = []
    for size in default_sizes(N_CELLS, *sample.embedding.shape):
        for start in range(n_starts):
            single = read_out(sample.embedding, N_CELLS, sizes=(size,), n_init=1, seed=1000 * (seed + 1) + start)
            pairs.append((single.entropy, accuracy(sample.cell, single.cell_responsibilities.argmax(axis=1))))
    return pairs


def rank_correlation(pairs: Iterable[tuple[float, float]]) -> float:
    """Spearman correlation of entropy and accuracy."""
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def measure(truth: str, seed: int, n_samples: int, n_init: int, n_starts: int) -> Record:
    """Run all methods on one data set."""
    sample = curved_clusters(truth, n_samples, seed)
    mixtures = single_mixtures(sample, seed, n_starts)
    began, cpu_began = time.perf_counter(), time.process_time()
    found = read_out(sample.embedding, N_CELLS, n_init=n_init, seed=seed)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    return Record(
        truth,
        seed,
        diagonal=plain_mixture(sample, "diag", seed),
        full=plain_mixture(sample, "full", seed),
        read_out=accuracy(sample.cell, found.cell_responsibilities.argmax(axis=1)),
        bayes_ceiling=sample.bayes_ceiling,
        entropy=found.entropy,
        size=found.size,
        mixtures=mixtures,
        spearman=rank_correlation(mixtures),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
    )


def _row(record: Record) -> str:
    return (
        f"{record.truth:>12} {record.seed:>4} {record.diagonal:>8.3f} {record.full:>7.3f} {record.read_out:>8.3f} "
        f"{record.bayes_ceiling:>7.3f} {record.entropy:>7.3f} {record.size:>4} "
        f"{record.spearman:>8.2f} {record.seconds:>7.2f} {record.cpu_seconds:>7.2f}"
    )


def main() -> None:
    """Measure every truth and seed, print the table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="data sets per truth")
    parser.add_argument("--samples", type=int, default=4096)
    parser.add_argument("--n_init", type=int, default=2, help="starts per size")
    parser.add_argument("--starts", type=int, default=4, help="starts per size for the rank correlation")
    parser.add_argument("--json", type=Path, help="write the records here")
    arguments = parser.parse_args()
    print(f"{'truth':>12} seed diagonal    full read-out ceiling entropy size spearman seconds     cpu")
    records = []
    for truth in TRUTHS:
        for seed in range(arguments.seeds):
            records.append(measure(truth, seed, arguments.samples, arguments.n_init, arguments.starts))
            print(_row(records[-1]), flush=True)
    summary = summarise(records)
    print("\n".join(f"{name:>24} {value:.3f}" for name, value in summary.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary, "records": [asdict(r) for r in records]}, indent=2))


def summarise(records: list[Record]) -> dict[str, float]:
    """Means over data sets, and how often each method comes within .03 of the ceiling."""
    summary = {}
    for method in ("diagonal", "full", "read_out"):
        summary[f"{method} mean"] = statistics.fmean(getattr(r, method) for r in records)
        summary[f"{method} near ceiling"] = statistics.fmean(
            getattr(r, method) > r.bayes_ceiling - 0.03 for r in records
        )
    summary["read_out wins"] = statistics.fmean(r.read_out >= r.diagonal for r in records)
    pairs = [pair for r in records for pair in r.mixtures]
    summary["single mixture mean"] = statistics.fmean(found for _, found in pairs)
    summary["spearman, median"] = statistics.median(r.spearman for r in records)
    summary["spearman, pooled"] = rank_correlation(pairs)
    summary["seconds median"] = statistics.median(r.seconds for r in records)
    summary["cpu seconds median"] = statistics.median(r.cpu_seconds for r in records)
    return summary


if __name__ == "__main__":
    main()
