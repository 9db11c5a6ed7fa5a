"""What several modalities and known physics are worth: clusters over seeds on real and generated data.

    python benchmarks/multimodal.py --study resin_coupons --seeds 10 --jobs 2 --json resin.json

Studies: `resin_coupons` (fused, and each modality alone), `mfeat` (one to six views of handwritten digits), `lattices`
(types, and the laws of the curves beside the planted ones), `physics` (lattices with and without the law, with one
modality and with both), `spoken_digits` and `nutrimouse` (real data of ../shared; skipped where it is not there).
The seed sets fit and, where they are generated, data alike.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from causalpima.inference.data.multimodal import MultimodalData
    from causalpima.inference.result import FitResult
    from causalpima.inference.training.config import FitConfig

Arm = tuple[str, Callable[[int], "tuple[MultimodalData, FitConfig]"]]
Record = dict[str, Any]


def only(data: MultimodalData, names: Sequence[str]) -> MultimodalData:
    """The same samples with some of the modalities; samples that have none of them are left out."""
    import numpy as np

    kept = {name: part for name, part in data.modalities.items() if name in names}
    rows = np.any([data.present[name] for name in kept], axis=0)

    def of(part: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values[rows] for name, values in part.items() if name in kept}

    return dataclasses.replace(
        data,
        modalities=of(data.modalities),
        present=of(data.present),
        observed=of(data.observed),
        kinds={name: data.kinds[name] for name in kept},
        factors={name: codes[rows] for name, codes in data.factors.items()},
        measurements={name: values[rows] for name, values in data.measurements.items()},
        groups=None if data.groups is None else data.groups[rows],
        sample_names=None if data.sample_names is None else data.sample_names[rows],
        environment=None if data.environment is None else data.environment[rows],
        bayes_ceiling=data.bayes_ceiling if len(kept) == len(data.modalities) else None,
    )


def of_modalities(config: FitConfig, names: Sequence[str], seed: int) -> FitConfig:
    """The configuration for these modalities and this seed."""
    modality = {name: entry for name, entry in config.modality.items() if name in names}
    epochs = config.distillation.epochs if len(modality) > 1 else 0
    distillation = dataclasses.replace(config.distillation, epochs=epochs)
    return dataclasses.replace(config, modality=modality, seed=seed, distillation=distillation)


def resin_coupons_arms() -> Iterator[Arm]:
    """Fused, and each kind of measurement alone."""
    from causalpima.examples.resin_coupons import EXPERIMENTS

    experiment = EXPERIMENTS["resin_coupons"]
    for label, names in {
        "fused": ("image", "compression", "tension"),
        "photo": ("image",),
        "curves": ("compression", "tension"),
    }.items():
        yield label, _arm(lambda _: experiment.make(**experiment.options), experiment.config, names)


def mfeat_arms() -> Iterator[Arm]:
    """The first one to six views, in the order in which the data list them."""
    from shared_data import MFEAT_VIEWS, mfeat

    for n_views in range(1, len(MFEAT_VIEWS) + 1):
        views = MFEAT_VIEWS[:n_views]
        yield f"{n_views} views", _arm(lambda _: mfeat(), views_config(MFEAT_VIEWS, {"digit": 10}), views)


def views_config(names: Sequence[str], nodes: Mapping[str, int]) -> FitConfig:
    """Settings for feature views: perceptrons, eight dimensions of Z, every view counts alike."""
    from causalpima.inference.training.config import (
        DecoderConfig,
        DistillationConfig,
        EncoderConfig,
        FitConfig,
        ModalityConfig,
        ModelConfig,
        PretrainingConfig,
        TrainingConfig,
    )

    view = ModalityConfig(EncoderConfig(sizes=(128, 64)), DecoderConfig(sizes=(64, 128)))
    return FitConfig(
        nodes=nodes,
        model=ModelConfig(latent_dim=8, likelihood_scaling="dimension"),
        pretraining=PretrainingConfig(epochs=40, kl_warmup=40),
        training=TrainingConfig(epochs=10, batch_size=64),
        distillation=DistillationConfig(epochs=20),
        modality=dict.fromkeys(names, view),
    )


def lattices_arms() -> Iterator[Arm]:
    """The named experiment, and the one with the paper's networks and split."""
    from causalpima.examples.lattices import EXPERIMENTS, lattices

    for name in ("lattices", "lattices_paper"):
        yield name, _arm(lambda seed: lattices(seed=seed), EXPERIMENTS[name].config, ("image", "curve"))


def physics_arms() -> Iterator[Arm]:
    """With and without the law of the curve, with one modality and with both."""
    from causalpima.examples.lattices import EXPERIMENTS, lattices

    config = EXPERIMENTS["lattices"].config
    network = dataclasses.replace(config.modality["curve"], decoder=config.modality["image"].decoder)
    without = dataclasses.replace(config, modality={**config.modality, "curve": network})
    for law, settings in (("law", config), ("network", without)):
        for size in (1, 2):
            for names in combinations(("image", "curve"), size):
                if law == "law" or "curve" in names:
                    yield f"{' + '.join(names)}, {law}", _arm(lambda seed: lattices(seed=seed), settings, names)


def spoken_digits_arms() -> Iterator[Arm]:
    """Three digits and two speakers, with a planted dependence: fused, and the recording alone."""
    from shared_data import spoken_digits

    def make(seed: int) -> MultimodalData:
        return spoken_digits(1500, seed, strength=0.6, digits=(0, 1, 7), speakers=("jackson", "theo"))

    names = ("bitmap", "force", "speech")
    for label, chosen in {"fused": names, "speech": names[2:]}.items():
        yield label, _arm(make, views_config(names, {"digit": 3, "speaker": 2}), chosen)


def nutrimouse_arms() -> Iterator[Arm]:
    """Forty mice, genotype and diet crossed by design."""
    from shared_data import nutrimouse

    config = views_config(("gene", "lipid"), {"genotype": 2})
    config = dataclasses.replace(config, training=dataclasses.replace(config.training, batch_size=8))
    yield "two omics", _arm(lambda _: nutrimouse(), config, ("gene", "lipid"))


def _arm(
    make: Callable[[int], MultimodalData], config: FitConfig, names: Sequence[str]
) -> Callable[[int], tuple[MultimodalData, FitConfig]]:
    def build(seed: int) -> tuple[MultimodalData, FitConfig]:
        data = make(seed)
        chosen = [name for name in data.modalities if name in names]
        return only(data, chosen), of_modalities(config, chosen, seed)

    return build


STUDIES: Mapping[str, Callable[[], Iterator[Arm]]] = {
    "resin_coupons": resin_coupons_arms,
    "mfeat": mfeat_arms,
    "lattices": lattices_arms,
    "physics": physics_arms,
    "spoken_digits": spoken_digits_arms,
    "nutrimouse": nutrimouse_arms,
}


def fit_one(study: str, label: str, seed: int) -> Record:
    """Fit one arm with one seed in this process; no files are left."""
    import torch
    from sklearn.metrics import adjusted_rand_score

    from causalpima.inference.run import Run

    torch.set_num_threads(1)
    data, config = dict(STUDIES[study]())[label](seed)
    began = time.perf_counter()
    run = Run(data, config)
    run.train()
    result = run.finish()
    record = {"arm": label, "seed": seed, "status": result.status, "seconds": round(time.perf_counter() - began, 1)}
    if result.arrays is None:
        return record
    found = result.arrays.responsibilities.argmax(1)
    for factor, codes in data.factors.items():
        record[f"ari {factor}"] = float(adjusted_rand_score(codes, found))
    record["accuracy"] = result.summary["evaluation"]["cluster_accuracy"]
    if study in ("lattices", "physics"):
        record |= _of_lattices(result, data)
    return record


def _of_lattices(result: FitResult, data: MultimodalData) -> Record:
    """Accuracy of the type, and relative errors of the laws of the cells beside the planted ones.

    Four cells have three labellings by two binary nodes that fit equally well, so the accuracy is that of the best
    pairing of the cells in two and two. The error of a law is that to the planted law of the cell's commonest type and
    quality; cells of fewer than five samples have none.
    """
    assert result.arrays is not None, "only finished fits come here"
    found = result.arrays.responsibilities.argmax(1)
    pairings = [(0, 1), (0, 2), (0, 3)]
    isin = [(found[:, None] == pair).any(1) == data.factors["type"].astype(bool) for pair in pairings]
    record = {"accuracy type": float(max(max(right.mean(), 1 - right.mean()) for right in isin))}
    physics = result.arrays.modalities["curve"].physics if "curve" in result.arrays.modalities else None
    return record if physics is None else record | {"largest error of a law": _law_error(physics, found, data)}


def _law_error(physics: Any, found: np.ndarray, data: MultimodalData) -> float:
    from collections import Counter

    from causalpima.examples.lattices import true_curve_parameters

    planted, errors = true_curve_parameters(), []
    for cell in set(found.tolist()):
        rows = found == cell
        if rows.sum() < 5:
            continue
        kind, quality = Counter(
            zip(data.factors["type"][rows], data.factors["quality"][rows], strict=True)
        ).most_common(1)[0][0]
        for name, table in planted.items():
            value = physics.value[cell, physics.names.index(name)]
            errors.append(abs(value / table[kind, quality] - 1))
    return float(max(errors))


def summarise(records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Mean, standard deviation, least and most over seeds of every measure of every arm."""
    table: dict[str, dict[str, Any]] = {}
    for arm in dict.fromkeys(record["arm"] for record in records):
        rows = [record for record in records if record["arm"] == arm]
        measures = {name for row in rows for name in row} - {"arm", "seed", "status"}
        table[arm] = {
            name: _spread([row[name] for row in rows if name in row])
            for name in sorted(measures, key=list(rows[0]).index)
        }
        table[arm]["failed"] = sum(row["status"] != "ok" for row in rows)
        table[arm]["seeds"] = len(rows)
    return table


def _spread(values: Sequence[float]) -> dict[str, float]:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.mean(values), "sd": deviation, "least": min(values), "most": max(values)}


def show(table: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the summary."""
    for arm, measures in table.items():
        print(f"\n{arm}: {measures['seeds']} seeds, {measures['failed']} failed")
        for name, spread in measures.items():
            if isinstance(spread, dict):
                print(
                    f"  {name:<24} {spread['mean']:8.3f} ± {spread['sd']:.3f}   "
                    f"from {spread['least']:.3f} to {spread['most']:.3f}"
                )


def main() -> None:
    """Run a study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", choices=list(STUDIES), required=True)
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 ... N-1")
    parser.add_argument("--first_seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parent))
    labels = [label for label, _ in STUDIES[options.study]()]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    records: list[Record] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(fit_one, options.study, label, seed) for label in labels for seed in seeds]
        for job in as_completed(jobs):
            records.append(job.result())
            print(json.dumps(records[-1]), flush=True)
    records.sort(key=lambda record: (labels.index(record["arm"]), record["seed"]))
    table = summarise(records)
    show(table)
    if options.json is not None:
        content = {"study": options.study, "machine": platform.processor(), "summary": table, "records": records}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
