"""Edge probabilities of four routes on tables of three nodes that are observed: exact, chains, a variational guide.

    python benchmarks/graph_routes.py --seeds 5 --hodge_seeds 1 --json graph_routes.json

Chain 0 -> 1 -> 2, collider 0 -> 1 <- 2, independent nodes; 300 and 4096 samples. Exact is BDeu with equivalent sample
size 1 over all 25 graphs. `dags` has the same prior; `guide` and `hodge` have others (docs/mcmc.md).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from causalpima.guides.graph import GraphGuide
from causalpima.inference.graphs.chains import CellEvidence, DagProgram, HodgeProgram, Settings, run_chains
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.posterior import NodeSamples, mixture_posterior
from causalpima.inference.graphs.scores import Score
from causalpima.inference.training.graph_updates import fit_graph_guide
from causalpima.models.graph.bayesian import BayesianGraph

OUTCOMES = (2, 2, 2)
NODES = ("A", "B", "C")
TEMPERATURE = 0.05


def sample_cells(kind: str, n: int, seed: int) -> np.ndarray:
    """Index of the cell of each sample, `[n]`."""
    rng = np.random.default_rng(seed)
    a, c = rng.random(n) < 0.5, rng.random(n) < 0.6
    b = rng.random(n) < 0.4
    if kind == "chain":
        b = rng.random(n) < np.where(a, 0.75, 0.25)
        c = rng.random(n) < np.where(b, 0.7, 0.3)
    elif kind == "collider":
        b = rng.random(n) < np.where(a & c, 0.9, np.where(a | c, 0.4, 0.2))
    return (4 * a + 2 * b + c).astype(int)


def log_likelihood(cells: np.ndarray) -> np.ndarray:
    """0 at the cell of each sample, -inf elsewhere."""
    with np.errstate(divide="ignore"):
        return np.log(np.eye(8))[cells]


def exact(cells: np.ndarray, seed: int) -> np.ndarray:
    """BDeu over all graphs."""
    samples = NodeSamples(NODES, OUTCOMES, log_likelihood(cells))
    return mixture_posterior(samples, Score("bdeu", 1.0), GraphKnowledge.none(NODES)).edge_probability


def dags(cells: np.ndarray, seed: int) -> np.ndarray:
    """NUTS on tables, graphs enumerated."""
    program = DagProgram.of(CellEvidence(log_likelihood(cells)), OUTCOMES, 1.0)
    return run_chains(program, Settings(60, 100), 1, seed).edge.mean((0, 1))


def hodge(cells: np.ndarray, seed: int) -> np.ndarray:
    """NUTS on scores, edge weights and tables: share of draws with E > 0.5."""
    program = HodgeProgram(CellEvidence(log_likelihood(cells)), OUTCOMES)
    return (run_chains(program, Settings(100, 100, full_mass=True), 2, seed).edge > 0.5).mean((0, 1))


def guide(cells: np.ndarray, seed: int) -> np.ndarray:
    """The variational guide over scores, parents and tables."""
    torch.manual_seed(seed)
    q = GraphGuide(BayesianGraph(OUTCOMES, TEMPERATURE))
    fit_graph_guide(q, torch.from_numpy(np.bincount(cells, minlength=8).astype(float)), 0.05, 300)
    return q.edge_probability().numpy()


ROUTES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "exact": exact,
    "dags": dags,
    "guide": guide,
    "hodge": hodge,
}


def main() -> None:
    """Run the study and print a line per table and route."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--hodge_seeds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = []
    for kind in ("chain", "collider", "independent"):
        for n in (300, 4096):
            for seed in range(arguments.seeds):
                for name, route in ROUTES.items():
                    if name == "hodge" and seed >= arguments.hodge_seeds:
                        continue
                    records.append(_record(kind, n, seed, name, route))
                if arguments.json:
                    arguments.json.write_text(json.dumps(records, indent=1))
    print(summary(records))


def _record(
    kind: str, n: int, seed: int, name: str, route: Callable[[np.ndarray, int], np.ndarray]
) -> dict[str, object]:
    began = time.process_time()
    edges = route(sample_cells(kind, n, seed), seed)
    return {
        "kind": kind,
        "n": n,
        "seed": seed,
        "route": name,
        "edges": edges.tolist(),
        "cpu": time.process_time() - began,
    }


def summary(records: list[dict[str, object]]) -> str:
    """Per kind, size and route: mean distance from exact of edges and of adjacencies, over the seeds."""
    found = {(r["kind"], r["n"], r["seed"], r["route"]): np.array(r["edges"]) for r in records}
    groups: dict[tuple[object, object, object], list[tuple[float, float, float]]] = {}
    away, upper = ~np.eye(3, dtype=bool), np.triu_indices(3, 1)
    for (kind, n, seed, route), edges in found.items():
        reference = found[kind, n, seed, "exact"]
        both, both_exact = (part + part.T for part in (edges, reference))
        distance = float(np.abs(edges - reference)[away].mean())
        adjacency = float(np.abs(both - both_exact)[upper].mean())
        groups.setdefault((kind, n, route), []).append((distance, adjacency, float(both[0, 2])))
    lines = [
        "| truth | n | route | tables | edge, mean distance | adjacency, mean distance | p(A adjacent C) |",
        "|---|---|---|---|---|---|---|",
    ]
    for (kind, n, route), values in groups.items():
        edge, adjacency, spurious = np.mean(values, axis=0)
        lines.append(f"| {kind} | {n} | {route} | {len(values)} | {edge:.3f} | {adjacency:.3f} | {spurious:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
