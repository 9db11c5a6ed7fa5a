"""Graphs of tables of categories: networks of the literature, and time against the number of columns.

    python benchmarks/bnlearn.py --study networks --json networks.json
    python benchmarks/bnlearn.py --study time --json time.json

`networks`: four networks of `../shared/data/bnlearn_discrete` by BIC and by BDeu with equivalent sample sizes 1, 5,
10: SHD of the class of the best graph and of the most probable class against the class of the truth, and the Brier
score of p(joined) over pairs of columns. All 10 000 rows in five random orders of the columns (seeds 0 to 4), and five
samples of 1000 rows without replacement (seeds 0 to 4 of `RandomState`, the rows of `reference_shd.csv`: exact BIC has
the same mean SHD there) beside PC and GES of that file.

`time`: seconds of the process for the table of local scores, the best graph, the sums over all graphs, 4000 graphs
drawn exactly with their classes (sums included), and 4 chains of 1000 draws; cancer (L = 5), asia (8) and
random binary networks of 12 and 16 nodes (seed L, at most three parents), 10 000 rows, BIC.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from shared_data import SHARED_DATA

from causalpima.inference.data.tables import CategoryTable, read_category_table
from causalpima.inference.findings.posterior import SENSITIVITY_SCORES, score_text
from causalpima.inference.graphs.dags import GraphKnowledge, cpdag, permute_nodes, skeleton, structural_hamming_distance
from causalpima.inference.graphs.enumeration import Evidence
from causalpima.inference.graphs.exact_sums import graph_sums
from causalpima.inference.graphs.partition_mcmc import partition_chains
from causalpima.inference.graphs.posterior import exact_posterior, posterior_of_scores
from causalpima.inference.graphs.scores import Score, best_dag, family_scores

FOLDER = SHARED_DATA / "bnlearn_discrete"
NETWORKS = ("cancer", "earthquake", "survey", "asia")
SEEDS = range(5)
_ROWS = 10_000

Record = dict[str, Any]


def truth(network: str, n_nodes: int) -> np.ndarray:
    """The DAG that the rows were drawn from, `[L, L]`."""
    dag = np.zeros((n_nodes, n_nodes), dtype=int)
    for cause, effect in re.findall(r"X(\d+) --> X(\d+)", (FOLDER / f"{network}.graph.txt").read_text()):
        dag[int(cause) - 1, int(effect) - 1] = 1
    return dag


def references() -> dict[tuple[str, int], Record]:
    """SHD of PC and GES by network and number of rows."""
    with (FOLDER / "reference_shd.csv").open(newline="") as file:
        return {
            (row["network"], int(row["N"])): {"pc": float(row["PC_chisq05_SHD"]), "ges": float(row["GES_BDeu_SHD"])}
            for row in csv.DictReader(file)
        }


def recovered(codes: np.ndarray, outcomes: Sequence[int], dag: np.ndarray, score: Score) -> Record:
    """How far what is found is from the truth."""
    scores, n_rows = family_scores(codes, outcomes, score), len(codes)
    nodes = GraphKnowledge.none(tuple(map(str, range(len(dag)))))
    posterior = posterior_of_scores(scores, nodes, Evidence(score, n_rows, n_rows))
    pairs = np.triu_indices(len(dag), 1)
    joined = skeleton(dag)[pairs].astype(float)
    return {
        "best": structural_hamming_distance(posterior.best, cpdag(dag)),
        "most_probable": structural_hamming_distance(posterior.classes[0].graph, cpdag(dag)),
        "brier": float(((posterior.adjacency_probability[pairs] - joined) ** 2).mean()),
        "brier_of_no_edge": float(joined.mean()),
    }


def in_orders(table: CategoryTable, dag: np.ndarray, score: Score) -> Iterator[Record]:
    """All rows, columns in random orders."""
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(dag)).tolist()
        outcomes = [table.outcomes[k] for k in order]
        yield recovered(table.codes[:, order], outcomes, permute_nodes(dag, order), score)


def in_samples(table: CategoryTable, dag: np.ndarray, score: Score, n_rows: int) -> Iterator[Record]:
    """Some of the rows."""
    for seed in SEEDS:
        rows = np.random.RandomState(seed).choice(len(table.codes), n_rows, replace=False)
        yield recovered(table.codes[rows], table.outcomes, dag, score)


def networks() -> Iterator[Record]:
    """A record per network, number of rows and score."""
    known = references()
    for network in NETWORKS:
        table = read_category_table(FOLDER / f"{network}.txt")
        dag = truth(network, len(table.nodes))
        for score in SENSITIVITY_SCORES:
            for n_rows, found in (
                (_ROWS, list(in_orders(table, dag, score))),
                (1000, list(in_samples(table, dag, score, 1000))),
            ):
                yield {
                    "network": network,
                    "rows": n_rows,
                    "score": score_text(score),
                    **{name: [record[name] for record in found] for name in found[0]},
                    **known[network, n_rows],
                }


def random_network(n_nodes: int) -> np.ndarray:
    """Rows of a random binary network, `[n, L]`; two parents per node on average, at most three."""
    generator = np.random.default_rng(n_nodes)
    edges = np.triu(generator.random((n_nodes, n_nodes)) < 4 / n_nodes, 1)
    codes = np.zeros((_ROWS, n_nodes), dtype=np.int64)
    for node in range(n_nodes):
        parents = np.flatnonzero(edges[:, node])[:3]
        table = generator.beta(0.5, 0.5, 2 ** len(parents))
        codes[:, node] = generator.random(_ROWS) < table[codes[:, parents] @ (1 << np.arange(len(parents)))]
    return codes


def times(n_nodes: int) -> Record:
    """Seconds per part."""
    if n_nodes in (5, 8):
        table = read_category_table(FOLDER / ("cancer.txt" if n_nodes == 5 else "asia.txt"))
        codes, outcomes = table.codes, table.outcomes
    else:
        codes, outcomes = random_network(n_nodes), (2,) * n_nodes
    scores, seconds = _timed(lambda: family_scores(codes, outcomes))
    nodes, evidence = GraphKnowledge.none(tuple(map(str, range(n_nodes)))), Evidence(Score(), _ROWS, _ROWS)
    sums, summing = _timed(lambda: graph_sums(scores))
    chains, sampling = _timed(lambda: partition_chains(scores))
    return {
        "nodes": n_nodes,
        "scores": seconds,
        "best": _timed(lambda: best_dag(scores))[1],
        "sums": summing,
        "posterior": _timed(lambda: exact_posterior(scores, nodes, evidence))[1],
        "chains": sampling,
        "rounding": sums.rounding,
        "largest_difference": float(abs(chains.dags.mean((0, 1)) - sums.edge_probability).max()),
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def show_networks(records: Sequence[Record]) -> None:
    """A row per network, number of rows and score."""
    print("| network | rows | score | SHD, best graph | SHD, most probable class | Brier | no edge | PC | GES |")
    print("|---|---|---|---|---|---|---|---|---|")
    for record in records:
        shd = [_mean(record[name]) for name in ("best", "most_probable")]
        brier = [f"{statistics.mean(record[name]):.3f}" for name in ("brier", "brier_of_no_edge")]
        cells = [record["network"], record["rows"], record["score"], *shd, *brier, record["pc"], record["ges"]]
        print("| " + " | ".join(map(str, cells)) + " |")


def _mean(values: Sequence[int]) -> str:
    same = len(set(values)) == 1
    return str(values[0]) if same else f"{statistics.mean(values):.1f} ({', '.join(map(str, values))})"


def show_times(records: Sequence[Record]) -> None:
    """A row per number of nodes."""
    names = [name for name in records[0] if name != "nodes"]
    print("| L | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for record in records:
        print(f"| {record['nodes']} | " + " | ".join(f"{record[name]:.2g}" for name in names) + " |")


def main() -> None:
    """Run a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=("networks", "time"), required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records = list(networks()) if arguments.study == "networks" else [times(n) for n in (5, 8, 12, 16)]
    (show_networks if arguments.study == "networks" else show_times)(records)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
