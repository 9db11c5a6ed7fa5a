"""The graph inside training: learned by gradients, or searched exactly at every update; on p(N) alone and on images.

    python benchmarks/graph_in_training.py --part joint --seeds 64 --json joint.json
    python benchmarks/graph_in_training.py --part rivals --seeds 16 --json rivals.json
    python benchmarks/graph_in_training.py --part views --seeds 3 --samples 2048 --json views.json

`joint`: counts of cells of the circles' truths go to the graph as they would after a read-out: exact ones, and those of
draws of N; the share of starts, or draws, that end in the true equivalence class. `rivals`: the same of exact counts,
the paper's graph beside those that penalties keep from cycles (docs/rival_graphs.md). `views`: whole fits of the
circles in three modalities that masks name; the class of the trained graph itself (without a search after the fit)
against the true one, KL of the true p(N) to the learned one, cluster accuracy, seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast, get_args

import numpy as np
import torch

from causalpima.examples.circle_truths import Truth, circle_network
from causalpima.inference.analyses.node_scores import divergence
from causalpima.inference.graphs.dags import cpdag, structural_hamming_distance
from causalpima.inference.training.clustering import refit_graph
from causalpima.inference.training.components import RELAXED, Components, make_graph
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.state import TrainingState

TRUTHS: tuple[Truth, ...] = get_args(Truth)
GRAPHS = ("hodge", "exact", "complete")
RIVALS = ("hodge", *RELAXED, "exact")
_N = 4096
_RATE = 8.0

Record = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    """Run a part, print a line per truth and graph, and write all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("joint", "rivals", "views"), required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=2048)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    records = []
    for record in _part(arguments.part, arguments.seeds, arguments.samples):
        records.append(record)
        print(_line(record), flush=True)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(records, indent=1))


def _part(name: str, n_seeds: int, n_samples: int) -> Iterator[Record]:
    if name == "views":
        return _views(n_seeds, n_samples)
    return _joint(n_seeds) if name == "joint" else _rivals(n_seeds)


def _line(record: Record) -> str:
    parts = (f"{name} {value:.3g}" if isinstance(value, float) else str(value) for name, value in record.items())
    return "  ".join(parts)


def _joint(n_seeds: int) -> Iterator[Record]:
    for truth in TRUTHS:
        network = circle_network(truth)
        rng = np.random.default_rng(0)
        drawn = [rng.multinomial(_N, network.joint.reshape(-1)) for _ in range(n_seeds)]
        for counts_are, counts in (("exact", [_N * network.joint.reshape(-1)] * n_seeds), ("drawn", drawn)):
            for graph, rate in (("hodge", 0.0), ("hodge", _RATE), ("exact", 0.0)):
                began = time.perf_counter()
                found = [_fit_joint(graph, count, seed, edge_rate=rate) for seed, count in enumerate(counts)]
                yield {
                    "truth": truth,
                    "counts": counts_are,
                    "graph": graph if not rate else f"{graph}, edge_rate {rate:g}",
                    **_summed_up(found, network.adjacency, network.joint),
                    "seconds": (time.perf_counter() - began) / n_seeds,
                }


def _rivals(n_seeds: int) -> Iterator[Record]:
    for truth in TRUTHS:
        network = circle_network(truth)
        for graph in RIVALS:
            began = time.perf_counter()
            count = _N * network.joint.reshape(-1)
            found = [_fit_joint(graph, count, seed) for seed in range(n_seeds if graph != "exact" else 1)]
            yield {
                "truth": truth,
                "graph": graph,
                "starts": len(found),
                **_summed_up(found, network.adjacency, network.joint),
                "skeleton": fmean(_is_skeleton(dag, network.adjacency) for dag, _ in found),
                "seconds": (time.perf_counter() - began) / len(found),
            }


def _is_skeleton(dag: np.ndarray, adjacency: np.ndarray) -> bool:
    """Whether the right pairs are joined, whichever way round."""
    return bool(((dag + dag.T > 0) == (adjacency + adjacency.T > 0)).all())


def _fit_joint(graph: str, count: np.ndarray, seed: int, edge_rate: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Adjacency and p(N) after the schedules of a training of ten epochs, or of the penalty of a rival."""
    base = FitConfig({"hue": 2, "radius": 2, "shift": 2})
    config = replace(base, model=replace(base.model, graph=graph), graph=replace(base.graph, edge_rate=edge_rate))
    torch.manual_seed(seed)
    own = make_graph(config)
    parts = {"components": Components(), "guide": SimpleNamespace(graph_guide=None), "optimizer": None}
    state = cast(TrainingState, SimpleNamespace(model=SimpleNamespace(graph=own), **parts))
    refit_graph(state, torch.tensor(count, dtype=torch.float64), config)
    return own.adjacency().numpy().astype(int), own.log_joint().detach().double().exp().numpy()


def _summed_up(found: Sequence[tuple[np.ndarray, np.ndarray]], adjacency: np.ndarray, joint: np.ndarray) -> Record:
    distances = [structural_hamming_distance(cpdag(dag), cpdag(adjacency)) for dag, _ in found]
    return {
        "right_class": fmean(distance == 0 for distance in distances),
        "shd": fmean(distances),
        "joint_kl": fmean(divergence(joint, learned) for _, learned in found),
    }


def _views(n_seeds: int, n_samples: int) -> Iterator[Record]:
    """Fit by fit; then the means."""
    found: dict[tuple[str, str], list[Record]] = {}
    for seed, truth, graph in product(range(n_seeds), TRUTHS[1:], GRAPHS):
        record = _fit_views(truth, graph, seed, n_samples)
        found.setdefault((truth, graph), []).append(record)
        yield {"truth": truth, "graph": graph, "seed": seed, **record}
    for arm, records in found.items():
        means = {name: fmean(float(record[name]) for record in records) for name in records[0]}
        yield {"truth": arm[0], "graph": arm[1], "mean of": len(records), **means}


def _fit_views(truth: str, graph: str, seed: int, n_samples: int) -> Record:
    from causalpima.inference.command_line.svi_parser import parse
    from causalpima.inference.run import Run

    flags = ["--dataset", f"circles_views_{truth}", "--seed", str(seed), "--model.graph", graph]
    arguments = parse([*flags, "--dataset_options.n_samples", str(n_samples)])
    began = time.perf_counter()
    run = Run(arguments.make_data(), arguments.config)
    run.train()
    scores = run.finish().summary["evaluation"]
    return {
        "shd": scores["graph"]["edge_strength"]["shd"],
        "search_shd": scores["graph"]["exact_search"]["shd"],
        "joint_kl": scores["graph"]["joint_kl"]["learned"],
        "true_labels_kl": scores["graph"]["joint_kl"]["true_labels"],
        "cluster_accuracy": scores["cluster_accuracy"],
        "seconds": time.perf_counter() - began,
    }


if __name__ == "__main__":
    main()
