"""Calibration of q(N|X), and the graph that the right names give, on the starts that circle_starts.py keeps.

    python benchmarks/clusters_and_graphs.py --folder circle-starts --json clusters_and_graphs.json

Per truth and data seed the start with the least entropy is taken, and its clusters are named by the true labels.
Graphs: the best class by BIC of the mixture likelihood, of the clusters taken for certain, and of the true labels (the
ceiling); beside them the same search on clusters that are named at random (chance).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from circle_starts import TRUTHS
from scipy.optimize import linear_sum_assignment

from examples.circle_truths import LEVELS, true_adjacency
from inference.evaluation.alignment import align
from inference.evaluation.calibration import calibration
from inference.graphs.comparison import permute_nodes, structural_hamming_distance
from inference.graphs.cpdag import cpdag
from inference.graphs.exact_search import score_classes
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.results.files import write_json

Record = dict[str, Any]
_OUTCOMES = (2, 2, 2)
_N_RANDOM = 20


def best_starts(folder: Path, dataset: str) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
    """Data seed, number of starts, and arrays of the start with the least entropy."""
    files: dict[int, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob(f"{dataset}-*-*.npz")):
        files[int(path.stem.split("-")[1])].append(path)
    for seed, paths in sorted(files.items()):
        starts = [dict(np.load(path)) for path in paths]
        yield seed, len(starts), min(starts, key=lambda start: float(start["entropy"]))


def record(dataset: str, seed: int, n_starts: int, start: dict[str, np.ndarray]) -> Record:
    """All that is measured of one start."""
    factors = {name: start[f"factor_{name}"] for name in LEVELS}
    true = np.ravel_multi_index(tuple(factors.values()), _OUTCOMES)
    r = named(start["responsibilities"].astype(np.float64), true)
    truth = cpdag(true_adjacency("independent" if dataset == "circles" else dataset.removeprefix("circles_")))  # type: ignore[arg-type]
    found = calibration(r, true, np.random.default_rng(seed))
    return {
        "dataset": dataset,
        "data_seed": seed,
        "n_starts": n_starts,
        "accuracy": float((r.argmax(1) == true).mean()),
        "ece": found.ece,
        "ece_if_calibrated": found.ece_if_calibrated,
        "shd": structural_hamming_distance(score_classes(log_likelihood_ratio(r), _OUTCOMES).best, truth),
        "shd_certain": structural_hamming_distance(of_labels(r.argmax(1)), truth),
        "shd_true_labels": structural_hamming_distance(of_labels(true), truth),
        "shd_random_names": [*at_random(r, factors, truth, seed)],
    }


def named(r: np.ndarray, true: np.ndarray) -> np.ndarray:
    """The same responsibilities, clusters in the order of the true cells that most of their samples have."""
    counts = np.zeros((8, 8))
    np.add.at(counts, (true, r.argmax(1)), 1)
    return r[:, linear_sum_assignment(counts, maximize=True)[1]]


def of_labels(cells: np.ndarray) -> np.ndarray:
    """The best class where cells are known."""
    with np.errstate(divide="ignore"):
        return score_classes(np.log(np.eye(8)[cells]), _OUTCOMES).best


def at_random(r: np.ndarray, factors: dict[str, np.ndarray], truth: np.ndarray, seed: int) -> Iterator[int]:
    """Distances when clusters are named at random and nodes read as the factors that they fit best."""
    generator = np.random.default_rng(seed)
    for _ in range(_N_RANDOM):
        shuffled = r[:, generator.permutation(8)]
        alignment = align(shuffled.argmax(1), _OUTCOMES, factors, _OUTCOMES)
        assert alignment is not None
        best = score_classes(log_likelihood_ratio(shuffled), _OUTCOMES).best
        yield structural_hamming_distance(permute_nodes(best, alignment.node), truth)


def row(dataset: str, records: list[Record]) -> str:
    """One line of the table."""
    ece = [one["ece"] for one in records]
    right = [sum(one[key] == 0 for one in records) for key in ("shd", "shd_certain", "shd_true_labels")]
    chance = np.mean([shd == 0 for one in records for shd in one["shd_random_names"]])
    worst = min(one["accuracy"] for one in records)
    floor = np.mean([one["ece_if_calibrated"] for one in records])
    return (
        f"{dataset:<17}{len(records):>4}  {worst:.3f}  {np.mean(ece):.4f} {max(ece):.4f}"
        f" {floor:.4f}   {right[0]:>3} {right[1]:>8} {right[2]:>7} {chance:>8.2f}"
    )


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("circle-starts"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {name: [record(name, *start) for start in best_starts(options.folder, name)] for name in TRUTHS}
    print("                       worst   calibration error       right graphs by")
    print("truth             sets accur.  mean   worst  floor    soft  certain  labels   chance")
    for name, records in found.items():
        if records:
            print(row(name, records))
    if options.json is not None:
        write_json(options.json, found)


if __name__ == "__main__":
    main()
