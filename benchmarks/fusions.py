"""What the ways to fuse encoders are worth: held-out bounds, cross-modal prediction and clusters, over seeds.

Alloys with a spectrum, which shows the alloy, and a stress-strain curve, which shows alloy and treatment (as in the
README). Prints the table of docs/fusion.md; a few seconds per fit.

    python benchmarks/fusions.py --seeds 5 --json fusions.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.analyses.cross_modal import cross_modal
from causalpima.inference.analyses.scores import cluster_accuracy
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.result import rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.training.config import (
    DistillationConfig,
    FitConfig,
    GuideConfig,
    PretrainingConfig,
    TrainingConfig,
    default_config,
)

ARMS = {
    "poe": ("poe", 0),
    "poe, distilled": ("poe", 20),
    "moe": ("moe", 0),
    "mopoe": ("mopoe", 0),
    "concat": ("concat", 0),
    "concat, distilled": ("concat", 20),
}


def alloys(seed: int, n: int = 600) -> MultimodalData:
    """Four groups: alloy and treatment."""
    rng = np.random.default_rng(seed)
    alloy = rng.random(n) < 0.4
    treated = rng.random(n) < np.where(alloy, 0.8, 0.3)
    position = np.linspace(0.0, 1.0, 32)
    peak, stiffness = np.where(alloy, 0.65, 0.35)[:, None], (1.0 + alloy + 0.5 * treated)[:, None]
    spectrum = np.exp(-(((position - peak) / 0.1) ** 2)) + 0.05 * rng.normal(size=(n, 32))
    curve = np.minimum(stiffness * position, 0.5 + 0.3 * treated[:, None]) + 0.05 * rng.normal(size=(n, 32))
    values = {"spectrum": spectrum.astype(np.float32), "curve": curve.astype(np.float32)}
    return MultimodalData(
        name="alloys",
        modalities=values,
        present={name: np.ones(n, dtype=bool) for name in values},
        kinds=dict.fromkeys(values, "vector"),
        factors={"alloy": alloy.astype(int), "treated": treated.astype(int)},
        factor_levels={"alloy": ("a", "b"), "treated": ("no", "yes")},
    )


def scores(arm: str, seed: int) -> dict[str, float]:
    """One fit: nats per held-out sample, R² of each modality from the other, cluster accuracy."""
    fusion, epochs = ARMS[arm]
    data = alloys(seed)
    config = FitConfig(
        nodes={"A": 2, "B": 2},
        seed=seed,
        guide=GuideConfig(fusion=fusion),
        pretraining=PretrainingConfig(epochs=40),
        training=TrainingConfig(epochs=20, batch_size=64, validation_fraction=0.2),
        distillation=DistillationConfig(epochs),
    )
    run = Run(data, _with_modalities(config, data))
    run.train()
    result = run.finish()
    assert result.arrays is not None
    r, truth = result.arrays.responsibilities, np.ravel_multi_index(tuple(data.factors.values()), (2, 2))
    crossed = cross_modal(rebuild_result(result), data, run.split, r)
    return {
        "bound": float(result.summary["objective"]["per_sample"]),
        "log-likelihood": float(result.summary["held_out_log_likelihood"]["per_sample"]),
        "R² of the spectrum": crossed["spectrum"].r2,
        "R² of the curve": crossed["curve"].r2,
        "accuracy": cluster_accuracy(r.argmax(1), truth),
    }


def _with_modalities(config: FitConfig, data: MultimodalData) -> FitConfig:
    return dataclasses.replace(config, modality=default_config(data, config.nodes).modality)


def table(found: Mapping[str, list[dict[str, float]]]) -> Iterator[str]:
    """Markdown: mean ± standard deviation over seeds."""
    names = list(next(iter(found.values()))[0])
    yield "| | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for arm, rows in found.items():
        values = {name: np.array([row[name] for row in rows]) for name in names}
        cells = (f"{value.mean():.2f} ± {value.std(ddof=1):.2f}" for value in values.values())
        yield f"| {arm} | " + " | ".join(cells) + " |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments: Any = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # a fit that merges groups shows in the accuracy
    found = {arm: [scores(arm, seed) for seed in range(arguments.seeds)] for arm in ARMS}
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1))
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
