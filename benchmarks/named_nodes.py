"""Nodes with a meaning from masks, from environments, and from few samples, end to end; over data seeds.

    python benchmarks/named_nodes.py --study masks --seeds 10 --jobs 2 --folder named-nodes --json masks.json

Studies: `masks` (three overlapping modalities of the five truths), `nested` and `two` (masks that leave 2 and 4
labellings), `environments` (images, with one do-environment per node; the clearest of two starts), `sizes` (labels of
all training samples, from n = 50 on), `resin_coupons`, `spoken_digits` and `labelled_digits` (real
data with masks; the last with labels of 5 % of the speakers). What a fit found is
kept in the folder, one file each, and not fitted again. The seed sets data and fit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from causalpima.inference.data.multimodal import MultimodalData
    from causalpima.inference.training.config import FitConfig

TRUTHS = ("", "_chain", "_fork", "_collider", "_edge")
SIZES = (50, 150, 500, 4096)

Record = dict[str, Any]


@dataclass(frozen=True)
class Arm:
    """One configuration of a study.

    Attributes:
        name: Of the arm.
        flags: Of `python -m inference.svi`; empty where the benchmark brings the data.
        starts: Starts, of which the clearest is kept.
    """

    name: str
    flags: tuple[str, ...]
    starts: int = 1


def arms(study: str) -> Iterator[Arm]:
    """The arms of a study."""
    if study == "masks":
        yield from (Arm(f"circles_views{truth}", ("--dataset", f"circles_views{truth}")) for truth in TRUTHS)
    elif study in ("nested", "two"):
        yield Arm(f"circles_views_{study}", ("--dataset", f"circles_views_{study}"))
    elif study == "environments":
        for truth in TRUTHS:
            name = f"circles_environments{truth}"
            yield Arm(name, ("--dataset", name, "--environments.kind", "do"), starts=2)
    elif study == "sizes":
        named = ("--nodes", "hue=2,radius=2,shift=2", "--observe", "hue,radius,shift")
        for n in SIZES:
            batch = ("--training.batch_size", str(min(256, max(8, n // 16))))
            flags = ("--dataset", "circles_collider", "--dataset_options.n_samples", str(n), *named, *batch)
            yield Arm(f"circles_collider, n = {n}", flags)
    else:
        yield Arm(study, ())


def fit_one(study: str, arm: Arm, seed: int, start: int, folder: Path) -> Record:
    """What a fit found, read from its file or fitted now."""
    path = folder / f"{arm.name.replace(', n = ', '-')}-{seed}-{start}.json"
    if not path.exists():
        found = _fit(study, arm, seed, start)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(json.dumps(found))
        os.replace(partial, path)
    record: Record = json.loads(path.read_text())
    return record


def _fit(study: str, arm: Arm, seed: int, start: int) -> Record:
    import torch

    from causalpima.inference.run import Run

    torch.set_num_threads(1)
    data, config = _REAL[study](seed) if study in _REAL else _named(arm.flags, seed)
    run = Run(data, replace(config, restart=start))
    run.train()
    return _record(run.finish().summary)


def _named(flags: Sequence[str], seed: int) -> tuple[MultimodalData, FitConfig]:
    from causalpima.inference.command_line.svi_parser import parse

    arguments = parse([*flags, "--seed", str(seed)])
    return arguments.make_data(), arguments.config


def _record(summary: Mapping[str, Any]) -> Record:
    scores, meaning = summary["evaluation"], summary["identifiability"]
    details = summary["labelling"]["details"]
    return {
        "status": summary["status"],
        "entropy": summary["clusters"]["entropy"],
        "n_occupied": summary["clusters"]["n_occupied"],
        "cluster_accuracy": scores["cluster_accuracy"],
        "bayes_ceiling": scores["bayes_ceiling"],
        "node_accuracy": scores["node_accuracy"],
        "worst": scores["node_accuracy_worst"],
        "random_worst": scores["random_labelling_baseline"]["worst"],
        "assignment": scores["assignment"],
        "ari": scores["ari"],
        "cpdag_shd": scores.get("cpdag_shd"),
        "graph": details.get("graph"),
        "class": (summary["graph"].get("equivalence_class") or {}).get("cpdag"),
        "targets": details.get("targets"),
        "equivalent_labellings": meaning["equivalent_labellings"],
        "identified_nodes": meaning["identified_nodes"],
        "is_named": meaning["is_named"],
        "mutual_information": summary["graph"]["mutual_information"],
        "seconds": summary["seconds"]["total"],
    }


def resin_coupons(seed: int) -> tuple[MultimodalData, FitConfig]:
    """The photo sees resin and sterilisation, the curves the resin."""
    from causalpima.examples.resin_coupons import EXPERIMENTS

    experiment = EXPERIMENTS["resin_coupons"]
    mask = {"image": ("resin", "sterilisation"), "compression": ("resin",), "tension": ("resin",)}
    config = replace(
        experiment.config,
        nodes={"resin": 8, "sterilisation": 3},
        mask=mask,
        seed=seed,
        distillation=replace(experiment.config.distillation, epochs=0),
    )
    return experiment.make(**experiment.options), config


def spoken_digits(seed: int) -> tuple[MultimodalData, FitConfig]:
    """Bitmap and force see the digit, the recording sees digit and speaker; three digits and two speakers, one edge."""
    import shared_data
    from multimodal import views_config

    data = shared_data.spoken_digits(1500, seed, strength=0.6, digits=(0, 1, 7), speakers=("jackson", "theo"))
    config = views_config(tuple(data.modalities), {"digit": 3, "speaker": 2})
    mask = {"bitmap": ("digit",), "force": ("digit",), "speech": ("digit", "speaker")}
    return data, replace(config, mask=mask, seed=seed, distillation=replace(config.distillation, epochs=0))


def labelled_digits(seed: int) -> tuple[MultimodalData, FitConfig]:
    """The same with the speaker of 5 % of the samples."""
    from causalpima.inference.training.config import ObserveConfig

    data, config = spoken_digits(seed)
    return data, replace(config, observe=ObserveConfig({"speaker": "speaker"}, fraction=0.05))


_REAL: Mapping[str, Callable[[int], tuple[MultimodalData, FitConfig]]] = {
    "resin_coupons": resin_coupons,
    "spoken_digits": spoken_digits,
    "labelled_digits": labelled_digits,
}


def clearest(starts: Sequence[Record]) -> Record:
    """The start that the program would keep."""
    from causalpima.inference.clusters.clustering import Quality, choose

    return starts[choose([Quality(s["status"] == "ok", s["n_occupied"], s["entropy"]) for s in starts])]


def directed_right(record: Record, truth: str) -> bool:
    """Whether the directed graph of the environments is the true one, nodes read as the factors they stand for."""
    import numpy as np

    from causalpima.examples.circle_truths import true_adjacency

    factors, nodes = ("hue", "radius", "shift"), ("N1", "N2", "N3")
    if record["graph"] is None or None in record["assignment"].values():
        return False
    order = [nodes.index(record["assignment"][factor]) for factor in factors]
    found = np.array(record["graph"])[np.ix_(order, order)]
    return bool((found == true_adjacency(truth or "independent")).all())  # type: ignore[arg-type]


def row(study: str, arm: Arm, records: Sequence[Record]) -> Record:
    """The line of an arm: means, spreads and shares over data seeds."""
    worst = [record["worst"] for record in records]
    limit = {"masks": 0.98}.get(study, 0.95)
    found: Record = {
        "arm": arm.name,
        "n": len(records),
        "accuracy": statistics.mean(record["cluster_accuracy"] for record in records),
        "worst node": statistics.mean(worst),
        "spread": statistics.stdev(worst) if len(worst) > 1 else 0.0,
        f"worst >= {limit}": statistics.mean(value >= limit for value in worst),
        "random names": statistics.mean(record["random_worst"] for record in records),
        "labellings": sorted({record["equivalent_labellings"] for record in records}, key=str),
        "all named": statistics.mean(record["is_named"] for record in records),
        "seconds": statistics.mean(record["seconds"] for record in records),
    }
    if study in ("masks", "sizes", "environments"):
        found["CPDAG right"] = statistics.mean(record["cpdag_shd"] == 0 for record in records)
    if study == "environments":
        truth = arm.name.removeprefix("circles_environments").removeprefix("_")
        found["directed graph right"] = statistics.mean(directed_right(record, truth) for record in records)
    if study in _REAL:
        for factor in records[0]["node_accuracy"]:
            found[factor] = statistics.mean(record["node_accuracy"][factor] for record in records)
        found["joined"] = statistics.mean(bool(r.get("class") and r["class"][0][1]) for r in records)
        found["nats shared"] = statistics.mean(record["mutual_information"][0][1] for record in records)
    return found


def main() -> None:
    """Fit what is missing, and print a line per arm."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = ("masks", "nested", "two", "environments", "sizes", *_REAL)
    parser.add_argument("--study", choices=studies, required=True)
    parser.add_argument("--seeds", type=int, default=10, help="seeds 0 ... N-1")
    parser.add_argument("--first_seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path("named-nodes"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    seeds, chosen = range(options.first_seed, options.first_seed + options.seeds), list(arms(options.study))
    jobs = [(arm, seed, start) for seed in seeds for arm in chosen for start in range(arm.starts)]
    found: dict[tuple[str, int, int], Record] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(fit_one, options.study, *job, options.folder): job for job in jobs}
        for future in as_completed(futures):
            arm, seed, start = futures[future]
            record = found[arm.name, seed, start] = future.result()
            print(f"{arm.name} {seed} {start}: worst {record['worst']:.4f}", flush=True)
    rows = []
    for arm in chosen:
        kept = [clearest([found[arm.name, seed, start] for start in range(arm.starts)]) for seed in seeds]
        rows.append(row(options.study, arm, kept))
        print("  ".join(f"{key} {_text(value)}" for key, value in rows[-1].items()))
    if options.json is not None:
        records = [{"arm": name, "seed": seed, "start": start, **r} for (name, seed, start), r in found.items()]
        options.json.write_text(json.dumps({"rows": rows, "records": records}, indent=2))


def _text(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
