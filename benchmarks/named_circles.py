"""Clusters and named nodes of the circles' five truths, from the starts that `circle_starts.py` keeps.

    python benchmarks/circle_starts.py --folder circle-starts --data_seeds 0,1,2,3,4,5,6,7,8,9 --starts 4
    python benchmarks/named_circles.py --folder circle-starts --json named.json

Of every data set the clearest of its starts is kept. Its clusters are scored as they are, then named: by the true
factors of eight medoids, and by labels of 41 training samples (1 %; drawn 20 times). Beside the accuracy of the
worst node stand that of random names, of the best names there are, and of logistic regression on the same labels (on
the embedding, and on 20 principal components of the pixels).
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from circle_starts import read_start, start_file
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from causalpima.examples.circle_truths import Truth, true_adjacency
from causalpima.examples.circles import circles
from causalpima.inference.analyses.node_scores import calibration, node_accuracy, random_labelling_baseline
from causalpima.inference.analyses.scores import cluster_accuracy
from causalpima.inference.analyses.sheet import nearest_to_median
from causalpima.inference.clusters import labels as labelling
from causalpima.inference.clusters.assumptions import image_moments, label_by_independence, label_by_read_outs
from causalpima.inference.clusters.clustering import Quality, choose, count_occupied, fit_status
from causalpima.inference.clusters.labels import UNKNOWN, assign_cells, labelled_mass
from causalpima.inference.graphs.dags import compare, cpdag
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.hidden import log_likelihood_ratio

OUTCOMES = (2, 2, 2)
FACTORS = ("hue", "radius", "shift")
DRAWS = 20

Record = dict[str, Any]


class Clusters(NamedTuple):
    """The clusters of a data set, and what is true of its samples.

    Attributes:
        responsibilities: `[n, C]`, clusters as numbered by the fit.
        loc: Embedding, `[n, J]`.
        codes: True levels, `[n, 3]`.
        training: Positions of the training samples.
    """

    responsibilities: np.ndarray
    loc: np.ndarray
    codes: np.ndarray
    training: np.ndarray

    @property
    def true_cells(self) -> np.ndarray:
        """`[n]`."""
        return np.ravel_multi_index(tuple(self.codes.T), OUTCOMES)

    def named_accuracy(self, permutation: np.ndarray, rows: np.ndarray | None = None) -> list[float]:
        """Share of right levels per factor when cluster c is cell `permutation[c]`; no more matching."""
        cells = permutation[self.responsibilities.argmax(1)]
        right = np.stack(np.unravel_index(cells, OUTCOMES), 1) == self.codes
        return [float(share) for share in (right if rows is None else right[rows]).mean(0)]

    def matched_worst(self, permutation: np.ndarray) -> float:
        """Accuracy of the worst factor where nodes and outcomes have no names of their own: by the best assignment."""
        nodes = np.stack(np.unravel_index(permutation[self.responsibilities.argmax(1)], OUTCOMES), axis=1)
        return node_accuracy(nodes, OUTCOMES, dict(zip(FACTORS, self.codes.T, strict=True))).worst

    def known(self) -> Clusters:
        """The true cells in place of the clusters."""
        return self._replace(responsibilities=np.eye(8)[self.true_cells])

    def named_by(self, rows: np.ndarray) -> np.ndarray:
        """The labelling that agrees best with the labels of these samples."""
        codes = np.full_like(self.codes, UNKNOWN)
        codes[rows] = self.codes[rows]
        return assign_cells(labelled_mass(self.responsibilities, codes, OUTCOMES))


def of_start(start: Mapping[str, np.ndarray]) -> Clusters:
    """What is kept of a start."""
    codes = np.stack([start[f"factor_{name}"] for name in FACTORS], axis=1)
    training = np.flatnonzero(start["split"] == "train")
    return Clusters(start["responsibilities"].astype(np.float64), start["latent_loc"], codes, training)


def quality(start: Mapping[str, np.ndarray]) -> Quality:
    """What a start is chosen by."""
    r = start["responsibilities"]
    return Quality(fit_status(r) == "ok", count_occupied(r), float(start["entropy"]))


def study(folder: Path, dataset: str, data_seed: int, n_starts: int, n_labels: int) -> Record:
    """All figures of one data set."""
    starts = [read_start(folder, dataset, data_seed, start) for start in range(n_starts)]
    best = choose([quality(start) for start in starts])
    clusters = of_start(starts[best])
    generator = np.random.default_rng(data_seed)
    truth: Truth = "independent" if dataset == "circles" else dataset.removeprefix("circles_")  # type: ignore[assignment]
    cells = clusters.responsibilities.argmax(1)
    factors = {name: clusters.codes[:, position] for position, name in enumerate(FACTORS)}
    images = circles(len(cells), data_seed, truth=truth).modalities["image"]
    found = calibration(clusters.responsibilities, clusters.true_cells, generator)
    return {
        "dataset": dataset,
        "data_seed": data_seed,
        "cluster_accuracy": cluster_accuracy(cells, clusters.true_cells),
        "best_start": float(max(start["cluster_accuracy"] for start in starts)),
        "kept_by_bound": float(max(starts, key=lambda start: float(start["objective"]))["cluster_accuracy"]),
        "single_starts": [float(start["cluster_accuracy"]) for start in starts],
        "bayes_ceiling": float(starts[best]["bayes_ceiling"]),
        "entropy": float(starts[best]["entropy"]),
        "ece": found.ece,
        "ece_if_calibrated": found.ece_if_calibrated,
        "unnamed_worst": node_accuracy(np.stack(np.unravel_index(cells, OUTCOMES), 1), OUTCOMES, factors).worst,
        "random_worst": random_labelling_baseline(cells, OUTCOMES, factors, generator).worst,
        "random_exact": float(
            np.mean([graph(clusters, generator.permutation(8), truth)["exact"] for _ in range(DRAWS)])
        ),
        "truth_exact": graph(clusters.known(), np.arange(8), truth)["exact"],
        "best_names_worst": min(clusters.named_accuracy(clusters.named_by(np.arange(len(cells))))),
        **assumptions(clusters, images),
        **medoids(clusters, truth),
        **labels(clusters, truth, generator, images, n_labels),
    }


def assumptions(clusters: Clusters, images: np.ndarray) -> Record:
    """Clusters named by image moments whose effects are declared to add up, and by declared independence."""
    nodes, there = dict.fromkeys(FACTORS, 2), np.ones(len(images), dtype=bool)
    seen = labelling.Clusters(clusters.responsibilities, clusters.loc)
    found = label_by_read_outs(seen, nodes, image_moments(images), there, ["image=moments"])
    return {
        "moments_worst": clusters.matched_worst(found.permutation),
        "independence_worst": clusters.matched_worst(label_by_independence(seen, nodes).permutation),
    }


def medoids(clusters: Clusters, truth: Truth) -> Record:
    """Every cluster named by the true levels of its medoid."""
    cells, everywhere = clusters.responsibilities.argmax(1), np.ones(len(clusters.loc), dtype=bool)
    shown = [nearest_to_median(clusters.loc, np.flatnonzero(cells == c), everywhere, 1) for c in range(8)]
    permutation = clusters.named_by(np.concatenate(shown))
    return {
        "medoids_worst": min(clusters.named_accuracy(permutation)),
        **{f"medoids_{key}": value for key, value in graph(clusters, permutation, truth).items()},
    }


def labels(
    clusters: Clusters, truth: Truth, generator: np.random.Generator, images: np.ndarray, n_labels: int
) -> Record:
    """Clusters named by few labels, and what supervised learning makes of them; means over draws, and shares."""
    pixels = PCA(20, random_state=0).fit_transform(images.reshape(len(images), -1)[clusters.training])
    drawn = [draw(clusters, truth, generator, pixels, n_labels) for _ in range(DRAWS)]
    return {
        "labels_worst": [record["worst"] for record in drawn],
        "labels_exact": [record["exact"] for record in drawn],
        "logistic_embedding_worst": [record["embedding"] for record in drawn],
        "logistic_pixels_worst": [record["pixels"] for record in drawn],
    }


def draw(clusters: Clusters, truth: Truth, generator: np.random.Generator, pixels: np.ndarray, n_labels: int) -> Record:
    """One draw of labels; scored on the training samples without a label."""
    chosen = generator.choice(len(clusters.training), n_labels, replace=False)
    others = np.setdiff1d(np.arange(len(clusters.training)), chosen)
    permutation = clusters.named_by(clusters.training[chosen])
    codes = clusters.codes[clusters.training]
    return {
        "worst": min(clusters.named_accuracy(permutation, clusters.training[others])),
        "exact": graph(clusters, permutation, truth)["exact"],
        "embedding": supervised(clusters.loc[clusters.training], codes, chosen, others),
        "pixels": supervised(pixels, codes, chosen, others),
    }


def supervised(features: np.ndarray, codes: np.ndarray, chosen: np.ndarray, others: np.ndarray) -> float:
    """Accuracy of the worst factor under logistic regression, one model per factor."""

    def accuracy(code: np.ndarray) -> float:
        if len(np.unique(code[chosen])) < 2:
            return float((code[others] == code[chosen][0]).mean())
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return float(model.fit(features[chosen], code[chosen]).score(features[others], code[others]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return min(accuracy(code) for code in codes.T)


def graph(clusters: Clusters, permutation: np.ndarray, truth: Truth) -> Record:
    """The best equivalence class under the names, beside the true one."""
    named = np.empty_like(clusters.responsibilities)
    named[:, permutation] = clusters.responsibilities
    found = score_classes(log_likelihood_ratio(named), OUTCOMES)
    true = cpdag(true_adjacency(truth))
    return {"exact": bool((found.best == true).all()), "shd": compare(found.best, true).shd, "gap": found.gap}


def summarise(records: Sequence[Record]) -> list[Record]:
    """A row per truth, and one for all."""
    names = [*dict.fromkeys(record["dataset"] for record in records), "all"]
    return [_row(name, [r for r in records if name in (r["dataset"], "all")]) for name in names]


def _row(name: str, records: Sequence[Record]) -> Record:
    def share(key: str, holds: Callable[[Any], bool]) -> float:
        return float(np.mean([holds(value) for record in records for value in np.atleast_1d(record[key])]))

    def mean(key: str) -> float:
        return float(np.mean([value for record in records for value in np.atleast_1d(record[key])]))

    return {
        "dataset": name,
        "n": len(records),
        "accuracy": mean("cluster_accuracy"),
        "accuracy >= .965": share("cluster_accuracy", lambda value: value >= 0.965),
        "single start >= .965": share("single_starts", lambda value: value >= 0.965),
        "kept by the bound >= .965": share("kept_by_bound", lambda value: value >= 0.965),
        "best of the starts >= .965": share("best_start", lambda value: value >= 0.965),
        "ceiling": mean("bayes_ceiling"),
        "ECE, largest": max(record["ece"] for record in records),
        "unnamed worst node": mean("unnamed_worst"),
        "random names worst": mean("random_worst"),
        "best names worst": mean("best_names_worst"),
        "moments worst": mean("moments_worst"),
        "independence worst": mean("independence_worst"),
        "medoids worst": mean("medoids_worst"),
        "medoids >= .95": share("medoids_worst", lambda value: value >= 0.95),
        "medoids CPDAG right": share("medoids_exact", bool),
        "labels worst": mean("labels_worst"),
        "labels >= .95": share("labels_worst", lambda value: value >= 0.95),
        "labels CPDAG right": share("labels_exact", bool),
        "random names CPDAG right": mean("random_exact"),
        "true labels CPDAG right": share("truth_exact", bool),
        "logistic, embedding": mean("logistic_embedding_worst"),
        "logistic, pixels": mean("logistic_pixels_worst"),
    }


def data_sets(folder: Path, n_starts: int) -> list[tuple[str, int]]:
    """Those all of whose starts are there."""
    names = (path.stem.rsplit("-", 2) for path in folder.glob("*-0.npz"))
    every = sorted((dataset, int(seed)) for dataset, seed, _ in names)
    return [each for each in every if all(start_file(folder, *each, start).exists() for start in range(n_starts))]


def main() -> None:
    """Study every data set all of whose starts are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("circle-starts"))
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--labels", type=int, default=41, help="labelled training samples")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    records = []
    for dataset, seed in data_sets(options.folder, options.starts):
        records.append(study(options.folder, dataset, seed, options.starts, options.labels))
        print(f"{dataset} {seed}: accuracy {records[-1]['cluster_accuracy']:.4f}", flush=True)
    rows = summarise(records)
    for key in rows[0]:
        print(f"{key:<26}" + "".join(f"{_text(row[key]):>18}" for row in rows))
    if options.json is not None:
        options.json.write_text(json.dumps({"records": records, "summary": rows}, indent=2))


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
