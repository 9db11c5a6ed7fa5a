"""How often 90 % intervals of an effect hold the truth, nodes being seen through clusters that overlap.

    python benchmarks/effect_intervals.py --repetitions 300 --json effect_intervals.json

Samples of a chain alloy -> heat -> hard, with a Gaussian per joint outcome at the corners of a cube of side 2 and the
standard deviation `spread`; asked is p(hard | do(alloy)), with the graph known. Intervals by the Bayesian bootstrap of
the likelihood of the mixture, as `inference.query` has them, beside those of clusters that are taken for certain.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.graphs.hidden import bootstrap_weights, mixture_shares
from causalpima.inference.graphs.interventions import intervened

SIZES = (2, 2, 2)
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
SPREADS = (0.5, 1.0)
SAMPLES = (200, 1000)
N_DRAWS = 200


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a table, and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=300, help="data sets per setting")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args(argv)
    records = [coverage(n, spread, options.repetitions) for spread in SPREADS for n in SAMPLES]
    print("spread  samples  wrong cell  mixture  certain clusters")
    for found in records:
        print("{spread:6.1f}  {n_samples:7d}  {error:10.3f}  {mixture:7.3f}  {certain:16.3f}".format(**found))
    if options.json is not None:
        options.json.write_text(json.dumps({"nominal": 0.9, "records": records}, indent=2) + "\n")
    return 0


def coverage(n_samples: int, spread: float, repetitions: int) -> dict[str, Any]:
    """Share of the data sets whose interval holds the truth, and of the samples whose likeliest cell is wrong."""
    found = [_one(n_samples, spread, seed) for seed in range(repetitions)]
    error, mixture, certain = np.mean(found, axis=0).tolist()
    return {"n_samples": n_samples, "spread": spread, "error": error, "mixture": mixture, "certain": certain}


def chain_joint() -> np.ndarray:
    """p(alloy) p(heat | alloy) p(hard | heat)."""
    heat, hard = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.9, 0.1], [0.25, 0.75]])
    joint: np.ndarray = np.array([0.6, 0.4])[:, None, None] * heat[:, :, None] * hard[None]
    return joint


def _one(n_samples: int, spread: float, seed: int) -> tuple[float, bool, bool]:
    rng, corners = np.random.default_rng(seed), 2.0 * np.array(list(np.ndindex(*SIZES))) - 1
    cell = rng.choice(len(corners), n_samples, p=chain_joint().reshape(-1))
    latent = corners[cell] + spread * rng.standard_normal((n_samples, 3))
    log_likelihood = -0.5 * np.square((latent[:, None] - corners) / spread).sum(-1)
    likeliest = log_likelihood.argmax(1)
    certain = np.where(np.eye(len(corners))[likeliest] > 0, 0.0, -np.inf)
    hits = [_holds(part, n_samples, rng) for part in (log_likelihood, certain)]
    return float((likeliest != cell).mean()), hits[0], hits[1]


def _holds(log_likelihood: np.ndarray, n_samples: int, rng: np.random.Generator) -> bool:
    weights = bootstrap_weights(n_samples, None, N_DRAWS, rng)
    drawn = _asked(mixture_shares(log_likelihood, SIZES, CHAIN, weights))
    low, high = np.nanquantile(drawn, [0.05, 0.95])
    return bool(low <= _asked(chain_joint()) <= high)


def _asked(joint: np.ndarray) -> np.ndarray:
    """p(hard = 1 | do(alloy = 1))."""
    asked: np.ndarray = intervened(joint, CHAIN, {0: 1})[..., 1].sum((-2, -1))
    return asked


if __name__ == "__main__":
    raise SystemExit(main())
