"""What a run says of modalities that test samples lack, against simple ways to fill them in.

    python benchmarks/missing_modality.py --dataset lattices --seeds 10 --jobs 2 --json missing.json

Each modality is hidden in 30 % of the test samples: at random, and systematically (where another modality is largest,
along its first principal component). Errors and CRPS are of standardised values, averaged over elements; coverage is
that of the 90 % interval. Arms differ in how a run learns to do without a modality: `plain`, `dropout` (30 % of the
modalities unseen in a gradient step), `distilled` (20 epochs of unimodal encoders), `both`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from causalpima.inference.data.multimodal import MultimodalData
    from causalpima.inference.run import Run
    from causalpima.inference.training.config import FitConfig
    from causalpima.inference.training.fitted_run import FittedRun

ARMS = ("plain", "dropout", "distilled", "both")
SCORES = ("rmse", "cluster_mean", "overall_mean", "ridge", "neighbours", "coverage", "crps", "crps_overall")
HIDDEN = 0.3
DRAWS = 200
EPOCHS = 30


def experiment(dataset: str, seed: int) -> tuple[MultimodalData, FitConfig]:
    """Samples and settings of a data set."""
    from shared_data import mfeat

    from causalpima.examples.lattices import EXPERIMENTS, lattices
    from causalpima.inference.training.config import ModelConfig, default_config

    if dataset == "lattices":
        return lattices(1000, seed), EXPERIMENTS["lattices"].config
    data = mfeat()
    config = default_config(data, {"digit": 10})
    return data, dataclasses.replace(config, model=ModelConfig(latent_dim=8, likelihood_scaling="dimension"))


def configured(config: FitConfig, arm: str, seed: int) -> FitConfig:
    """The settings of an arm, with a quarter of the samples for the test."""
    from causalpima.inference.training.config import DistillationConfig

    dropout = 0.3 if arm in ("dropout", "both") else 0.0
    training = dataclasses.replace(config.training, test_fraction=0.25, modality_dropout=dropout, epochs=EPOCHS)
    distillation = DistillationConfig(20 if arm in ("distilled", "both") else 0)
    return dataclasses.replace(config, seed=seed, training=training, distillation=distillation)


def hidden_rows(data: MultimodalData, test: np.ndarray, name: str, pattern: str, seed: int) -> np.ndarray:
    """Positions of the test samples in which a modality is hidden."""
    n_hidden = round(HIDDEN * len(test))
    if pattern == "random":
        return np.sort(np.random.default_rng(seed).choice(test, n_hidden, replace=False))
    names = list(data.modalities)
    other = data.modalities[names[(names.index(name) + 1) % len(names)]].reshape(data.n_samples, -1).astype(float)
    centred = other - other.mean(0)
    axis = np.linalg.svd(centred, full_matrices=False)[2][0]
    return np.sort(test[np.argsort(centred[test] @ axis)[-n_hidden:]])


def without(data: MultimodalData, name: str, rows: np.ndarray) -> MultimodalData:
    """These samples, without a modality."""
    values = {m: v[rows] if m != name else np.zeros_like(v[rows]) for m, v in data.modalities.items()}
    present = {m: mask[rows] & (m != name) for m, mask in data.present.items()}
    return dataclasses.replace(data, modalities=values, present=present, factors={}, measurements={}, groups=None)


def one_fit(dataset: str, arm: str, seed: int) -> list[dict[str, Any]]:
    """Fit once; a record per hidden modality and pattern."""
    import torch

    from causalpima.inference.result import rebuild_result
    from causalpima.inference.run import Run

    torch.set_num_threads(1)
    data, base = experiment(dataset, seed)
    run = Run(data, configured(base, arm, seed))
    run.train()
    result = run.finish()
    facts = {"dataset": dataset, "arm": arm, "seed": seed, "status": result.status}
    facts["ari"] = result.summary["evaluation"]["ari"]
    fitted, test = rebuild_result(result), np.flatnonzero(run.split == "test")
    r_all = result.responsibilities().to_numpy()
    return [
        {**facts, "modality": name, "pattern": pattern}
        | scores(run, fitted, r_all, name, hidden_rows(data, test, name, pattern, seed))
        for name in data.modalities
        for pattern in ("random", "systematic")
    ]


def scores(run: Run, fitted: FittedRun, r_all: np.ndarray, name: str, rows: np.ndarray) -> dict[str, float]:
    """Errors, coverage and CRPS of one modality in some samples; `r_all` are the responsibilities of all."""
    from causalpima.inference.analyses.predict import PredictionOptions, predict
    from causalpima.inference.analyses.samples import fit_to_run

    lacking = fit_to_run(without(run.data, name, rows), fitted)
    found = predict(fitted, lacking, PredictionOptions(DRAWS, seed=run.config.seed))
    scale = fitted.modalities[name].standardisation
    truth = scale.apply(run.data.modalities[name][rows].astype(float))
    raw = run.data.modalities[name][rows]
    inside = (found[f"{name}_lower"].to_numpy() <= raw) & (raw <= found[f"{name}_upper"].to_numpy())
    known = np.flatnonzero(run.split != "test")
    target = scale.apply(run.data.modalities[name][known].astype(float)).reshape(len(known), -1)
    flat = truth.reshape(len(rows), -1)
    climate = np.random.default_rng(0).permutation(len(target))[:DRAWS]
    filled = baselines(
        run, fitted, name, rows, known, target, r_all[known].argmax(1), found["responsibilities"].to_numpy()
    )
    return {
        "rmse": _rmse(scale.apply(found[f"{name}_mean"].to_numpy().astype(float)).reshape(flat.shape), flat),
        **{way: _rmse(value, flat) for way, value in filled.items()},
        "coverage": float(inside.mean()),
        "crps": float(
            np.mean([crps(draws, value) for draws, value in zip(predictive(fitted, lacking, name), flat, strict=True)])
        ),
        "crps_overall": float(np.mean([crps(target[climate], value) for value in flat])),
    }


def baselines(
    run: Run,
    fitted: FittedRun,
    name: str,
    rows: np.ndarray,
    known: np.ndarray,
    target: np.ndarray,
    cluster: np.ndarray,
    r: np.ndarray,
) -> dict[str, np.ndarray]:
    """Other ways to fill in a modality from the others, fitted to all samples but the test's.

    Args:
        run: The run.
        fitted: Its model.
        name: The modality.
        rows: Samples to fill it in for.
        known: Samples to learn from.
        target: Standardised values of these, `[known, element]`.
        cluster: Their most probable cells.
        r: Responsibilities of the samples to fill in, without the modality.
    """
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsRegressor

    others = np.concatenate(
        [
            fitted.modalities[m].standardisation.apply(v.astype(float)).reshape(len(v), -1)
            for m, v in run.data.modalities.items()
            if m != name
        ],
        axis=1,
    )
    means = np.stack(
        [target[cluster == c].mean(0) if (cluster == c).any() else target.mean(0) for c in range(r.shape[1])]
    )
    ridge = RidgeCV(np.logspace(-2, 6, 17)).fit(others[known], target)
    grid = {"n_neighbors": [1, 3, 5, 10, 20, 40]}
    search = GridSearchCV(KNeighborsRegressor(), grid, scoring="neg_mean_squared_error", cv=5)
    neighbours = search.fit(others[known], target)
    return {
        "cluster_mean": means[r.argmax(1)],
        "overall_mean": np.broadcast_to(target.mean(0), (len(rows), target.shape[1])),
        "ridge": ridge.predict(others[rows]).reshape(len(rows), -1),
        "neighbours": neighbours.predict(others[rows]).reshape(len(rows), -1),
    }


def predictive(fitted: FittedRun, samples: Any, name: str) -> Iterator[np.ndarray]:
    """Draws `[draw, element]` of a modality on the scale of the model, sample by sample."""
    import torch

    from causalpima.inference.analyses.predictive_moments import Noise, draw
    from causalpima.inference.training.state import surroundings

    like = fitted.model.mixture.component_loc
    with surroundings(fitted.device), torch.no_grad():
        torch.manual_seed(1)
        noise = Noise.make(DRAWS, fitted.model)
        for _, batch in samples.batches(16, like):
            drawn = draw(fitted, batch, noise)
            cell = torch.distributions.Categorical(drawn.cell_probability).sample()
            values = fitted.model.decode(name, drawn.latent, cell, batch.covariates).sample()
            yield from values.flatten(2).transpose(0, 1).double().numpy()


def crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """`E |X - x| - E |X - X'| / 2` of every element, without bias from the number of draws (Ferro 2014).

    Args:
        draws: X, `[draw, element]`.
        truth: x, `[element]`.
    """
    m, ordered = len(draws), np.sort(draws, axis=0)
    rank = np.arange(1, m + 1)[:, None]
    spread = ((2 * rank - m - 1) * ordered).sum(0) / (m * (m - 1))
    return np.abs(draws - truth).mean(0) - spread


def _rmse(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard deviation over the seeds, a row per arm, pattern and modality."""
    head = f"{'arm':<10} {'pattern':<11} {'modality':<8} {'seeds':>5} " + " ".join(f"{score:>14}" for score in SCORES)
    keys = sorted(
        {(r["arm"], r["pattern"], r["modality"]) for r in records}, key=lambda k: (k[2], k[1], ARMS.index(k[0]))
    )
    return "\n".join([head, *(_row(key, records) for key in keys)])


def _row(key: tuple[str, str, str], records: Sequence[Mapping[str, Any]]) -> str:
    rows = [r for r in records if (r["arm"], r["pattern"], r["modality"]) == key]
    cells = []
    for score in SCORES:
        values = [row[score] for row in rows]
        spread = f"±{statistics.stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.3f}{spread}".rjust(14))
    return f"{key[0]:<10} {key[1]:<11} {key[2]:<8} {len(rows):>5} " + " ".join(cells)


def main() -> None:
    """Run all seeds and arms, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", choices=("lattices", "mfeat"), default="lattices")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    records: list[dict[str, Any]] = []
    with ProcessPoolExecutor(chosen.jobs) as pool:
        todo = [
            pool.submit(one_fit, chosen.dataset, arm, seed)
            for seed in range(chosen.seeds)
            for arm in chosen.arms.split(",")
        ]
        for done in as_completed(todo):
            records += done.result()
            print(f"{len(records)} records", file=sys.stderr, flush=True)
            if chosen.json is not None:  # after every fit: an interrupted study keeps what it has
                chosen.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print(table(records))


if __name__ == "__main__":
    main()
