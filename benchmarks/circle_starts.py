"""Starts of the circles' five truths, kept as files, for the studies of clusters, names and graphs.

    python benchmarks/circle_starts.py --folder circle-starts --data_seeds 0,1,2 --starts 4 --jobs 2

One file per truth, data seed and start: what q(N|X) and q(Z|X) are at the end of the default fit. Files that are there
are not made again.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

TRUTHS = ("circles", "circles_chain", "circles_fork", "circles_collider", "circles_edge")

__all__ = ["TRUTHS", "make_start", "read_start", "start_file"]


def start_file(folder: Path, dataset: str, data_seed: int, start: int) -> Path:
    """Where a start is kept."""
    return folder / f"{dataset}-{data_seed}-{start}.npz"


def make_start(folder: Path, dataset: str, data_seed: int, start: int, flags: Sequence[str] = ()) -> Path:
    """Fit one start of the default command and keep what it found; nothing is done where the file is there."""
    path = start_file(folder, dataset, data_seed, start)
    if path.exists():
        return path
    import torch

    from causalpima.inference.command_line.svi_parser import parse
    from causalpima.inference.run import Run

    arguments = parse(["--dataset", dataset, "--seed", str(data_seed), *flags])
    torch.set_num_threads(1)
    run = Run(arguments.make_data(), replace(arguments.config, restart=start))
    run.train()
    result = run.finish()
    partial = path.with_suffix(f".{os.getpid()}.partial")
    with partial.open("wb") as file:
        np.savez(file, allow_pickle=False, **_arrays(result))
    os.replace(partial, path)
    return path


def _arrays(result: Any) -> dict[str, np.ndarray]:
    arrays, summary = result.arrays, result.summary
    return {
        "responsibilities": arrays.responsibilities.astype(np.float32),
        "latent_loc": arrays.latent_loc,
        "split": arrays.split,
        "entropy": np.array(summary["clusters"]["entropy"]),
        "objective": np.array(summary["objective"]["per_sample"]),
        "cluster_accuracy": np.array(summary["evaluation"]["cluster_accuracy"]),
        "bayes_ceiling": np.array(summary["evaluation"]["bayes_ceiling"]),
        "seconds": np.array(summary["seconds"]["total"]),
        **{f"factor_{name}": codes for name, codes in arrays.factors.items()},
    }


def read_start(folder: Path, dataset: str, data_seed: int, start: int) -> dict[str, np.ndarray]:
    """The arrays of a start."""
    with np.load(start_file(folder, dataset, data_seed, start)) as file:
        return {name: file[name] for name in file.files}


def main() -> None:
    """Make all starts that are not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("circle-starts"))
    parser.add_argument("--datasets", default=",".join(TRUTHS))
    parser.add_argument("--data_seeds", default=",".join(map(str, range(10))))
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("flags", nargs="*", help="flags of python -m inference.svi, after --")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (options.folder, dataset, int(seed), start, options.flags)
        for seed in options.data_seeds.split(",")
        for dataset in options.datasets.split(",")
        for start in range(options.starts)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in as_completed([pool.submit(make_start, *job) for job in jobs]):
            print(done.result().name, flush=True)


if __name__ == "__main__":
    main()
