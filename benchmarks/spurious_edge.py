"""Whether errors of the middle node of h -> r -> s buy an edge between h and s.

    python benchmarks/spurious_edge.py --errors "r 2 %,r 5 %" --seeds 50 --json spurious-edge.json
    python benchmarks/spurious_edge.py --errors "all 10 %,all 20 %" --samples 1000,20000 --seeds 10 --json overlap.json

Tables of circles_chain: p(h = 1) = 0.5, p(r = 1 | h) = 0.3, 0.75, p(s = 1 | r) = 0.2, 0.7; r is read wrongly in 2 or
5 % of the samples, or every node in 10 or 20 %. Given the reading, h and s stay dependent. P(h adjacent s) by the
posterior over graphs, uniform over all, from

- plain counts of the readings;
- the likelihood of the mixture, with l_nc = p(reading | r): the error modelled;
- the same with half the true error: modelled, but not rightly;
- counts behind the readings (`inference.graphs.hidden`), which stand in for the mixture where there are more
  than four nodes;
- the same as if they were counts of all samples, whatever information the errors took away.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from causalpima.inference.findings.posterior import SENSITIVITY_SCORES, score_text
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.hidden import deconvolve
from causalpima.inference.graphs.posterior import NodeSamples, mixture_posterior, posterior_of_scores
from causalpima.inference.graphs.scores import GraphPosterior, Score, table_family_scores

NODES = ("h", "r", "s")
OUTCOMES = (2, 2, 2)
ERRORS = {
    "r 2 %": (0.0, 0.02, 0.0),
    "r 5 %": (0.0, 0.05, 0.0),
    "all 10 %": (0.1, 0.1, 0.1),
    "all 20 %": (0.2, 0.2, 0.2),
}
WAYS = ("plain counts", "modelled", "half the error", "counts behind", "counts behind, all samples")

Record = dict[str, Any]


class Readings(NamedTuple):
    """How often each joint reading came, `[8]`, row-major over h, r, s, and the errors of these."""

    counts: np.ndarray
    errors: tuple[float, ...]

    def samples(self, share: float = 1.0) -> NodeSamples:
        """The readings, each once with its count as weight, under a share of their errors."""
        cells, errors = np.stack(np.unravel_index(np.arange(8), OUTCOMES), axis=1), share * np.array(self.errors)
        is_right = cells[:, None, :] == cells[None, :, :]
        with np.errstate(divide="ignore"):
            likelihood = np.log(np.where(is_right, 1 - errors, errors)).sum(-1)
        return NodeSamples(NODES, OUTCOMES, likelihood, self.counts.astype(float))


def drawn(n_samples: int, errors: tuple[float, ...], seed: int) -> Readings:
    """Samples of the chain, every node read wrongly in a share of them."""
    random = np.random.default_rng((seed, n_samples, *(round(1000 * error) for error in errors)))
    h = random.random(n_samples) < 0.5
    r = random.random(n_samples) < np.where(h, 0.75, 0.3)
    s = random.random(n_samples) < np.where(r, 0.7, 0.2)
    read = np.stack([h, r, s]) ^ (random.random((3, n_samples)) < np.array(errors)[:, None])
    return Readings(np.bincount(np.array([4, 2, 1]) @ read, minlength=8), errors)


def posterior(readings: Readings, way: str, score: Score) -> GraphPosterior:
    """The posterior by one of the ways."""
    known, samples = GraphKnowledge.none(NODES), readings.samples(0.5 if way == "half the error" else 1.0)
    if way in ("modelled", "half the error"):
        return mixture_posterior(samples, score, known)
    counts = readings.counts.reshape(OUTCOMES)
    if way != "plain counts":
        found = deconvolve(samples.log_likelihood, OUTCOMES, samples.weights, score.equivalent_sample_size or 0.0)
        counts = found.counts if way == "counts behind" else found.counts / found.information_share
    return posterior_of_scores(table_family_scores(counts, score), known, samples.evidence(score))


def records(options: argparse.Namespace) -> Iterator[Record]:
    """One per error, number of samples, way and score."""
    for error in options.errors.split(","):
        for n_samples in map(int, options.samples.split(",")):
            readings = [drawn(n_samples, ERRORS[error], seed) for seed in range(options.seeds)]
            for way in WAYS:
                for score in SENSITIVITY_SCORES:
                    found = [posterior(reading, way, score).adjacency_probability[0, 2] for reading in readings]
                    yield _record(error, n_samples, way, score, np.array(found))


def _record(error: str, n_samples: int, way: str, score: Score, found: np.ndarray) -> Record:
    return {
        "error": error,
        "n_samples": n_samples,
        "way": way,
        "score": score_text(score),
        "mean": float(found.mean()),
        "highest": float(found.max()),
        "above_half": int((found >= 0.5).sum()),
        "seeds": len(found),
    }


def table(found: list[Record]) -> str:
    """Mean probability, and in how many seeds it is 0.5 or more."""
    lines = ["| error | samples | way | " + " | ".join(map(score_text, SENSITIVITY_SCORES)) + " |"]
    lines.append("|---" * (3 + len(SENSITIVITY_SCORES)) + "|")
    by_row: dict[tuple[str, int, str], list[Record]] = {}
    for record in found:
        by_row.setdefault((record["error"], record["n_samples"], record["way"]), []).append(record)
    for (error, n_samples, way), row in by_row.items():
        cells = " | ".join(f"{record['mean']:.2f} ({record['above_half']})" for record in row)
        lines.append(f"| {error} | {n_samples} | {way} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--errors", default="r 2 %,r 5 %", help=f"some of {', '.join(ERRORS)}".replace("%", "%%"))
    parser.add_argument("--samples", default="1000,5000,20000,50000")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = list(records(options))
    print(table(found))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
