"""Seconds to read an epoch from disk, by how the file is stored and by the order of the samples.

    python benchmarks/reading.py --samples 100000 --folder FOLDER --json reading.json

Samples are those of `memory.py`. `in order`: batches of 2048, as passes over all samples read them. `windows`: batches
of 256 in the order of training, neighbours of 64 from places drawn at random. `single rows`: 256 random rows at a time,
which is what training would read without windows; of some batches only, scaled up. Least of `--repeats`, one thread,
the file in the cache of the system if memory has room for it; nothing is learned.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from causalpima.inference.data.tensors import TensorData

STORAGES = ("contiguous", "chunked", "compressed", "zarr")
ORDERS = ("in order", "windows", "single rows")
FEW = 20


def opened(path: Path) -> TensorData:
    """The samples of a file, nine in ten of them, as training has them."""
    import torch

    from causalpima.inference.data.reading import as_multimodal
    from causalpima.inference.data.roles import ReadOptions
    from causalpima.inference.data.tensors import Scale, to_tensors

    torch.set_num_threads(1)
    data = as_multimodal(path, ReadOptions(in_memory="no"))
    scales = {name: Scale(standardise=False) for name in data.modalities}
    tensors = to_tensors(data, np.ones(data.n_samples, dtype=bool), scales, torch.device("cpu"))
    return tensors.subset(np.flatnonzero(np.random.default_rng(0).random(data.n_samples) < 0.9))


def seconds(data: TensorData, repeats: int) -> dict[str, float]:
    """Per order, those of an epoch."""
    import torch

    def single_rows() -> None:
        for _ in range(FEW):
            data.batch(torch.randint(data.n_samples, (256,)))

    def least(read: Callable[[], object]) -> float:
        return min(_timed(read) for _ in range(repeats))

    return {
        "in order": least(lambda: [len(batch) for batch in data.batches(2048)]),
        "windows": least(lambda: [len(batch) for batch in data.batches(256, shuffle=True)]),
        "single rows": least(single_rows) * data.n_samples / (256 * FEW),
    }


def _timed(read: Callable[[], object]) -> float:
    began = time.perf_counter()
    read()
    return time.perf_counter() - began


def table(records: Sequence[Mapping[str, object]]) -> str:
    """One line per storage."""
    lines = ["| storage | MiB | " + " | ".join(f"{order} s" for order in ORDERS) + " |", "|" + "---|" * 5]
    for record in records:
        numbers = " | ".join(f"{record[order]:.1f}" for order in ORDERS)
        lines.append(f"| {record['storage']} | {record['file_mib']:.0f} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, print."""
    from memory import size_of, write_file

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=100_000, help="number of samples")
    parser.add_argument("--repeats", type=int, default=3, help="the least of so many times is given")
    parser.add_argument("--folder", type=Path, required=True, help="for the files, which are used again")
    parser.add_argument("--json", type=Path, help="write the records to this file")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, object]] = []
    for storage in STORAGES:
        path = given.folder / f"{storage}-{given.samples}.{'zarr' if storage == 'zarr' else 'nc'}"
        if not path.exists():
            write_file(path, given.samples, storage)
        found = seconds(opened(path), given.repeats)
        records.append({"storage": storage, "file_mib": size_of(path) / 2**20, **found})
    print(table(records))
    if given.json is not None:
        given.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
