"""Whether edge probabilities are right as often as they say: random graphs, random tables, exact posteriors.

    python benchmarks/graph_calibration.py --graphs 200 --json calibration.json --figure calibration.png

Graph i has 3, 4 or 5 nodes of two or three outcomes, and is drawn uniformly from all DAGs of its size; its tables are
drawn from the prior of BDeu with equivalent sample size 10 (`bdeu`), or each column from Dirichlet(1, ..., 1)
(`uniform`). Nodes are seen. Every posterior is scored on p(i -> j) and on p(i and j joined): expected calibration error
in ten bins of equal width, beside what a calibrated posterior would have on average on as many probabilities, and the
Brier skill over two baselines: no edge at all, and how frequent the edge is among all DAGs of the size.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalpima.inference.analyses.node_scores import expected_calibration_error
from causalpima.inference.graphs.dags import GraphKnowledge, all_dags
from causalpima.inference.graphs.enumeration import Evidence, enumerated_posterior
from causalpima.inference.graphs.scores import Score, family_scores

SIZES = (3, 4, 5)
SAMPLES = (300, 1000, 4096)
TABLES = {"bdeu": 10.0, "uniform": None}
SCORES = (Score("bic"), Score("bdeu", 1.0), Score("bdeu", 5.0), Score("bdeu", 10.0))
N_BINS = 10
N_DRAWS = 500

Record = dict[str, Any]


class Network(NamedTuple):
    """A graph with tables.

    Attributes:
        dag: `[L, L]`, row = cause, column = effect.
        outcomes: Outcomes per node.
        joint: p(N), `[C_1, ..., C_L]`.
    """

    dag: np.ndarray
    outcomes: tuple[int, ...]
    joint: np.ndarray


dags = cache(all_dags)


def random_network(number: int, equivalent_sample_size: float | None) -> Network:
    """Graph and outcomes depend on the number alone, so that all kinds of tables are drawn for the same graphs."""
    generator = np.random.default_rng((7, number))
    n_nodes = SIZES[number % len(SIZES)]
    dag = dags(n_nodes)[generator.integers(len(dags(n_nodes)))]
    outcomes = tuple(map(int, generator.integers(2, 4, n_nodes)))
    joint = np.ones(outcomes)
    for node in range(n_nodes):
        joint = joint * _table(generator, dag[:, node], node, outcomes, equivalent_sample_size)
    return Network(dag, outcomes, joint)


def _table(
    generator: np.random.Generator, parents: np.ndarray, node: int, outcomes: Sequence[int], size: float | None
) -> np.ndarray:
    """p(node | parents), with size 1 along all other nodes."""
    shape = [count if parents[k] else 1 for k, count in enumerate(outcomes)]
    columns = int(np.prod(shape))
    weight = 1.0 if size is None else size / (columns * outcomes[node])
    drawn = generator.dirichlet(np.full(outcomes[node], weight), size=shape[:node] + shape[node + 1 :])
    return np.moveaxis(drawn, -1, node).reshape([*shape[:node], outcomes[node], *shape[node + 1 :]])


def sample(network: Network, n_samples: int, number: int) -> np.ndarray:
    """Codes `[n, L]`."""
    generator = np.random.default_rng((8, number, n_samples))
    share = network.joint.reshape(-1)
    cells = generator.choice(share.size, n_samples, p=share / share.sum())
    return np.stack(np.unravel_index(cells, network.outcomes), axis=1)


def probabilities(number: int, tables: str, n_samples: int, score: Score) -> Iterator[tuple[str, float, bool, float]]:
    """Kind, probability, truth and prior frequency of every edge of one network."""
    network = random_network(number, TABLES[tables])
    codes = sample(network, n_samples, number)
    names = tuple(f"N{k + 1}" for k in range(len(network.outcomes)))
    scores, evidence = family_scores(codes, network.outcomes, score), Evidence(score, n_samples, n_samples)
    found = enumerated_posterior(scores, GraphKnowledge.none(names), evidence)
    prior = dags(len(names)).mean(0)
    for i, j in product(range(len(names)), repeat=2):
        if i != j:
            yield "edge", float(found.edge_probability[i, j]), bool(network.dag[i, j]), float(prior[i, j])
        if i < j:
            joined, expected = network.dag[i, j] + network.dag[j, i], prior[i, j] + prior[j, i]
            yield "adjacency", float(found.adjacency_probability[i, j]), bool(joined), float(expected)


def scored(values: Sequence[tuple[float, bool, float]], generator: np.random.Generator) -> Record:
    """Calibration and skill of probabilities."""
    claimed, truth, prior = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    claimed = claimed.clip(0, 1)
    bins = np.minimum((claimed * N_BINS).astype(np.int64), N_BINS - 1)
    drawn = generator.random((N_DRAWS, len(claimed))) < claimed
    brier, empty, frequent = (float(np.square(guess - truth).mean()) for guess in (claimed, 0.0, prior))
    count = np.bincount(bins, minlength=N_BINS)
    kept = count > 0
    return {
        "n": len(claimed),
        "ece": expected_calibration_error(claimed, truth, bins),
        "ece_if_calibrated": float(np.mean([expected_calibration_error(claimed, draw, bins) for draw in drawn])),
        "brier": brier,
        "skill_over_empty": 1 - brier / empty,
        "skill_over_frequency": 1 - brier / frequent,
        "bins": {
            "claimed": (np.bincount(bins, claimed, N_BINS)[kept] / count[kept]).tolist(),
            "found": (np.bincount(bins, truth, N_BINS)[kept] / count[kept]).tolist(),
            "count": count[kept].tolist(),
        },
    }


def arm(tables: str, n_samples: int, score: Score, n_graphs: int) -> Iterator[Record]:
    """The rows of one kind of tables, one size and one score."""
    every = [entry for number in range(n_graphs) for entry in probabilities(number, tables, n_samples, score)]
    for kind in ("edge", "adjacency"):
        values = [entry[1:] for entry in every if entry[0] == kind]
        named = {"tables": tables, "samples": n_samples, "score": label(score), "of": kind}
        yield {**named, **scored(values, np.random.default_rng(0))}


def label(score: Score) -> str:
    """`bic`, `bdeu 10`."""
    return score.name if score.equivalent_sample_size is None else f"{score.name} {score.equivalent_sample_size:g}"


def draw(rows: Sequence[Record], path: Path) -> None:
    """Reliability of p(i -> j), a row of panels per kind of tables, a column per number of samples."""
    from causalpima.inference.findings.drawing import GREY, Space, category_colours, figure_style, panels, save_figure

    with figure_style():
        space = Space(left=0.25, below=0.3, above=0.3)
        figure, axes = panels(len(TABLES) * len(SAMPLES), size=(2.1, 2.1), columns=len(SAMPLES), space=space)
        for ax, (tables, n_samples) in zip(axes, product(TABLES, SAMPLES), strict=True):
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--")
            for score, colour, marker in zip(SCORES, category_colours(len(SCORES)), "osD^", strict=True):
                wanted = (tables, n_samples, label(score), "edge")
                row = next(r for r in rows if (r["tables"], r["samples"], r["score"], r["of"]) == wanted)
                name = f"{_NAMES[score.name]} {score.equivalent_sample_size or ''}".strip().removesuffix(".0")
                ax.plot(
                    row["bins"]["claimed"], row["bins"]["found"], color=colour, marker=marker, ms=4, lw=1, label=name
                )
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
            ax.set_title(f"{_TABLES[tables]}, n = {n_samples}")
        for ax in axes[:: len(SAMPLES)]:
            ax.set_ylabel("share of edges that are there")
        for ax in axes[-len(SAMPLES) :]:
            ax.set_xlabel("posterior probability of the edge")
        axes[0].legend(frameon=False)
        save_figure(figure, path)


_NAMES = {"bic": "BIC", "bdeu": "BDeu"}
_TABLES = {"bdeu": "tables of BDeu 10", "uniform": "uniform tables"}


def main() -> None:
    """Score every arm and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=200, help="graphs 0 ... N-1")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    rows = []
    for tables, n_samples, score in product(TABLES, SAMPLES, SCORES):
        for row in arm(tables, n_samples, score, options.graphs):
            rows.append(row)
            shown = {key: value for key, value in row.items() if key != "bins"}
            print(
                "  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in shown.items()), flush=True
            )
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=2))
    if options.figure is not None:
        draw(rows, options.figure)


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
