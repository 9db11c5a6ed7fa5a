"""What p(N | e) does for q(N|X) of samples under interventions, beside p(N) without interventions for all samples.

    python benchmarks/environment_priors.py --seeds 4 --json environment_priors.json

Two nodes, A -> B, at the corners of a square of side 4 with standard deviation `spread`; a third of 2048 samples each
without intervention, under do(A) and under do(B), both of which make outcome 1 probable (.9). One fit each; then q(N|X)
of the samples under interventions with and without the tables of their environments, all else being equal.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from causalpima.inference.analyses.node_scores import calibration, matched
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.run import Run
from causalpima.inference.training.config import (
    DecoderConfig,
    EncoderConfig,
    EnvironmentsConfig,
    FitConfig,
    GraphConfig,
    ModalityConfig,
    PretrainingConfig,
    TrainingConfig,
)

SPREADS = (0.8, 1.2)
N_SAMPLES = 2048
NAMES = ("observational", "do(A)", "do(B)")
_FOLLOWS = np.array([[0.8, 0.2], [0.1, 0.9]])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print a line per fit, and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="seeds 0 ... N-1")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    records = [one(spread, seed) for spread in SPREADS for seed in range(options.seeds)]
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=2))
    return 0


def joints() -> np.ndarray:
    """p(N | e), `[3, 4]`."""
    shares = (np.array([0.6, 0.4]), np.array([0.1, 0.9]))
    usual, do_a = (share[:, None] * _FOLLOWS for share in shares)
    return np.stack([usual, do_a, np.outer(shares[0], shares[1])]).reshape(3, 4)


def draw(spread: float, seed: int) -> tuple[MultimodalData, np.ndarray]:
    """The samples and their cells."""
    rng, environment = np.random.default_rng(seed), np.arange(N_SAMPLES) % 3
    cell = (rng.random(N_SAMPLES)[:, None] > joints().cumsum(1)[environment]).sum(1)
    values = 4.0 * np.stack([cell // 2, cell % 2], axis=1) + spread * rng.standard_normal((N_SAMPLES, 2))
    data = MultimodalData(
        name="two nodes",
        modalities={"x": values.astype(np.float32)},
        present={"x": np.ones(N_SAMPLES, dtype=bool)},
        kinds={"x": "vector"},
        environment=environment,
        environment_names=NAMES,
    )
    return data, cell


def one(spread: float, seed: int) -> dict[str, Any]:
    """A fit, and its scores with p(N | e) and with p(N)."""
    data, cell = draw(spread, seed)
    small = ModalityConfig(EncoderConfig(sizes=(8,)), DecoderConfig(sizes=(8,)))
    config = FitConfig(
        nodes={"A": 2, "B": 2},
        modality={"x": small},
        environments=EnvironmentsConfig("do", {"do(A)": "A", "do(B)": "B"}),
        pretraining=PretrainingConfig(epochs=15),
        training=TrainingConfig(epochs=8, batch_size=64, learning_rate=1e-2),
        graph=GraphConfig(start_steps=50),
        seed=seed,
    )
    run = Run(data, config)
    run.train()
    run.finish()
    with_tables = scores(run, cell)
    run.state.model.environments.clear()
    found = {"p(N | e)": with_tables, "p(N)": scores(run, cell)}
    print(spread, seed, *(f"{name}: {_text(values)}" for name, values in found.items()), sep="  ", flush=True)
    return {"spread": spread, "seed": seed, **found}


def scores(run: Run, cell: np.ndarray) -> dict[str, float]:
    """Calibration error, mean log q(true cell | x) and accuracy of samples under interventions."""
    environment = run.data.environment
    assert environment is not None
    r = run.clusters()[0]
    guess = matched(r.argmax(1), cell)
    cluster = [int(np.bincount(r.argmax(1)[guess == true], minlength=4).argmax()) for true in range(4)]
    rows = environment > 0
    found = calibration(r[rows], cell[rows], np.random.default_rng(0))
    return {
        "ece": found.ece,
        "ece_if_calibrated": found.ece_if_calibrated,
        "log_score": float(np.log(r[np.arange(N_SAMPLES), np.array(cluster)[cell]][rows]).mean()),
        "accuracy": float((guess == cell)[rows].mean()),
    }


def _text(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in found.items())


if __name__ == "__main__":
    main()
