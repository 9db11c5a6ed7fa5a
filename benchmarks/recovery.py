"""Cluster accuracy over seeds with the default command, a single start each, beside each data set's Bayes ceiling.

    python benchmarks/recovery.py --dataset circles --seeds 20 --jobs 2 --json recovery.json

Any further flags go to the command as they are (`-- --objective paper`). The seed sets data and fit alike.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

WITHIN = 0.010


def fit_one(dataset: str, seed: int, flags: Sequence[str]) -> dict[str, Any]:
    """Fit one seed in this process; no files are left."""
    import torch

    from causalpima.inference.command_line.svi_parser import parse
    from causalpima.inference.run import Run

    arguments = parse(["--dataset", dataset, "--seed", str(seed), *flags])
    torch.set_num_threads(arguments.threads)
    began = time.perf_counter()
    run = Run(arguments.make_data(), arguments.config, arguments.device)
    run.train()
    summary = run.finish().summary
    scores = summary["evaluation"]
    return {
        "seed": seed,
        "status": summary["status"],
        "cluster_accuracy": scores["cluster_accuracy"],
        "bayes_ceiling": scores["bayes_ceiling"],
        "gap": scores["bayes_ceiling"] - scores["cluster_accuracy"],
        "node_accuracy_mean": scores["node_accuracy_mean"],
        "entropy": summary["clusters"]["entropy"],
        "seconds": time.perf_counter() - began,
    }


def show(record: dict[str, Any]) -> None:
    """Print one line of the table."""
    print(
        f"{record['seed']:>5} {record['status']:>10} {record['cluster_accuracy']:>9.4f} "
        f"{record['bayes_ceiling']:>8.4f} {record['gap']:>8.4f} {record['entropy']:>8.4f} {record['seconds']:>7.1f}",
        flush=True,
    )


def main() -> None:
    """Run all seeds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="circles")
    parser.add_argument("--seeds", type=int, default=20, help="seeds 0 ... N-1")
    parser.add_argument("--first_seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("flags", nargs="*", help="flags of python -m inference.svi, after --")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"{'seed':>5} {'status':>10} {'accuracy':>9} {'ceiling':>8} {'gap':>8} {'entropy':>8} {'seconds':>7}")
    records = []
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(fit_one, options.dataset, seed, options.flags) for seed in seeds]
        for job in as_completed(jobs):
            records.append(job.result())
            show(records[-1])
    records.sort(key=lambda record: record["seed"])
    accuracy = [record["cluster_accuracy"] for record in records]
    within = sum(record["gap"] <= WITHIN for record in records)
    print(
        f"\n{within} of {len(records)} within {WITHIN:.3f} of the ceiling; accuracy median "
        f"{statistics.median(accuracy):.4f}, lowest {min(accuracy):.4f}; {platform.machine()}, {options.jobs} processes"
    )
    if options.json is not None:
        options.json.write_text(json.dumps({"flags": options.flags, "records": records}, indent=2))


if __name__ == "__main__":
    main()
