"""Posteriors over the graph of the circles' truths, from pictures to edge probabilities; from kept starts.

    python benchmarks/circle_starts.py --folder circle-starts --data_seeds 0,1,2,3,4,5,6,7,8,9 --starts 4
    python benchmarks/circle_graphs.py --folder circle-starts --json circle-graphs.json

Of every data set the clearest of its starts is kept (as in `named_circles.py`). Its clusters are named by the true
factors of eight medoids, by 41 labels (20 draws) or, for comparison, replaced by the true labels. Training samples
count. Per truth: structural Hamming distance of the best class, how often it is the true one, how often the true one is
in the set that carries 95 %, and p(true class); over all truths: expected calibration error and Brier skill of
p(i -> j) and p(joined).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from circle_starts import read_start
from graph_calibration import SCORES, label, scored
from named_circles import FACTORS, OUTCOMES, Clusters, data_sets, of_start, quality

from causalpima.examples.circle_truths import Truth, true_adjacency
from causalpima.inference.analyses.sheet import nearest_to_median
from causalpima.inference.clusters.clustering import choose
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, cpdag, structural_hamming_distance
from causalpima.inference.graphs.enumeration import Evidence, weigh_dags
from causalpima.inference.graphs.hidden import log_likelihood_ratio
from causalpima.inference.graphs.posterior import scores_by_class
from causalpima.inference.graphs.scores import GraphPosterior, Score

N_LABELS = 41
DRAWS = 20
NAMINGS = ("true labels", "medoids", "41 labels")

Record = dict[str, Any]


def posterior(responsibilities: np.ndarray, permutation: np.ndarray, score: Score) -> GraphPosterior:
    """Of the training samples' clusters under these names."""
    named = np.empty_like(responsibilities)
    named[:, permutation] = responsibilities
    dags = all_dags(len(OUTCOMES))
    values = scores_by_class(log_likelihood_ratio(named), OUTCOMES, dags, score)
    return weigh_dags(dags, values, GraphKnowledge.none(FACTORS), Evidence(score, len(named), len(named)))


def namings(clusters: Clusters, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """How the clusters are named, q(N|X) of the training samples, and the cell of every cluster."""
    generator, rows = np.random.default_rng(seed), clusters.training
    yield "true labels", np.eye(8)[clusters.true_cells[rows]], np.arange(8)
    cells, everywhere = clusters.responsibilities.argmax(1), np.ones(len(clusters.loc), dtype=bool)
    shown = [nearest_to_median(clusters.loc, np.flatnonzero(cells == c), everywhere, 1) for c in range(8)]
    yield "medoids", clusters.responsibilities[rows], clusters.named_by(np.concatenate(shown))
    for _ in range(DRAWS):
        drawn = generator.choice(rows, N_LABELS, replace=False)
        yield "41 labels", clusters.responsibilities[rows], clusters.named_by(drawn)


def study(folder: Path, dataset: str, data_seed: int, n_starts: int) -> Iterator[Record]:
    """A record per naming and score."""
    starts = [read_start(folder, dataset, data_seed, start) for start in range(n_starts)]
    clusters = of_start(starts[choose([quality(start) for start in starts])])
    truth: Truth = "independent" if dataset == "circles" else dataset.removeprefix("circles_")  # type: ignore[assignment]
    dag = true_adjacency(truth)
    for naming, responsibilities, permutation in namings(clusters, data_seed):
        for score in SCORES:
            found = posterior(responsibilities, permutation, score)
            named = {"dataset": dataset, "data_seed": data_seed, "naming": naming, "score": label(score)}
            yield {**named, **compared(found, dag)}


def compared(found: GraphPosterior, dag: np.ndarray) -> Record:
    """A posterior against the true graph."""
    true, n_nodes = cpdag(dag), len(dag)
    prior = all_dags(n_nodes).mean(0)
    held = [float(entry.probability) for entry in found.classes if (entry.graph == true).all()]
    pairs = [(i, j) for i in range(n_nodes) for j in range(n_nodes) if i != j]
    joined, expected = dag + dag.T, prior + prior.T
    return {
        "shd": structural_hamming_distance(found.best, true),
        "in_set": bool(held),
        "p_true": held[0] if held else 0.0,
        "edge": [(float(found.edge_probability[i, j]), bool(dag[i, j]), float(prior[i, j])) for i, j in pairs],
        "adjacency": [
            (float(found.adjacency_probability[i, j]), bool(joined[i, j]), float(expected[i, j]))
            for i, j in pairs
            if i < j
        ],
    }


def summarise(records: Sequence[Record]) -> Iterator[str]:
    """A line per naming, score and truth, and one for the calibration over all truths."""
    for naming in NAMINGS:
        for score in map(label, SCORES):
            chosen = [r for r in records if (r["naming"], r["score"]) == (naming, score)]
            for dataset in dict.fromkeys(r["dataset"] for r in chosen):
                yield f"{naming:<12} {score:<8} {_row(dataset, [r for r in chosen if r['dataset'] == dataset])}"
            yield f"{naming:<12} {score:<8} {_row('all', chosen)}"
            for kind in ("edge", "adjacency"):
                found = scored([value for r in chosen for value in r[kind]], np.random.default_rng(0))
                numbers = "  ".join(f"{key} {value:.4f}" for key, value in found.items() if isinstance(value, float))
                yield f"{naming:<12} {score:<8} {kind}: {numbers}"


def _row(name: str, records: Sequence[Record]) -> str:
    shares = {
        "SHD": np.mean([r["shd"] for r in records]),
        "class right": np.mean([r["shd"] == 0 for r in records]),
        "in the 95 % set": np.mean([r["in_set"] for r in records]),
        "p(true class)": np.mean([r["p_true"] for r in records]),
    }
    return f"{name:<17} n {len(records):<4} " + "  ".join(f"{key} {value:.3f}" for key, value in shares.items())


def main() -> None:
    """Study every data set all of whose starts are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("circle-starts"))
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records: list[Record] = []
    for dataset, seed in data_sets(options.folder, options.starts):
        records.extend(study(options.folder, dataset, seed, options.starts))
    print("\n".join(summarise(records)))
    if options.json is not None:
        options.json.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
