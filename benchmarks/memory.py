"""Peak memory and time of whole runs on files that stay on disk, against the number of samples.

    python benchmarks/memory.py --samples 10000,100000,1000000 --folder FOLDER --json memory.json

Every sample is a curve of 100 values and an image of 16 x 16 (1424 bytes in float32), of four groups. A process of its
own reads the file (`--in_memory no`), pretrains for one epoch, trains for one, reads the clusters out and exports; with
`--predict`, a second one predicts every sample. `peak` is the largest resident memory of the process; the next two
columns are slopes from the row above: bytes of memory per sample, and passes: bytes read per byte of the file. Linux
only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5netcdf
import numpy as np

POSITIONS, SIDE, GROUPS = 100, 16, 4
ROWS, CHUNK = 4096, 64
ROOT = Path(__file__).resolve().parents[1]
SETTINGS = [
    *("--nodes", "2,2", "--quiet", "--seed", "0", "--threads", "1"),
    *("--pretraining.epochs", "1", "--training.epochs", "1", "--training.batch_size", "256"),
    *("--modality.curve.encoder.sizes", "8", "--modality.curve.decoder.sizes", "8"),
    *("--modality.image.encoder.sizes", "4,8", "--modality.image.decoder.sizes", "8"),
    *("--modality.image.decoder.kind", "mlp"),
]


class Cost(NamedTuple):
    """What a process took: seconds, bytes of resident memory at most, bytes read."""

    seconds: float
    peak: int
    read: int


def write_file(path: Path, n_samples: int, storage: str) -> None:
    """Samples of four groups, a block at a time: a ramp and a spot whose place depends on the group.

    Args:
        path: New file.
        n_samples: Number of samples.
        storage: `contiguous`; `chunked` (64 samples), also `compressed`; `zarr` the same in zarr.
    """
    rng = np.random.default_rng(0)
    if storage == "zarr":
        _write_zarr(path, n_samples, rng)
        return
    compression = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if storage == "compressed" else {}
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"sample": n_samples, "position": POSITIONS, "height": SIDE, "width": SIDE}
        for name, dims in (("curve", ("position",)), ("image", ("height", "width"))):
            shape = tuple(file.dimensions[dim].size for dim in dims)
            chunks = None if storage == "contiguous" else (CHUNK, *shape)
            file.create_variable(name, ("sample", *dims), "f4", chunks=chunks, **compression)
        file.create_variable("position", ("position",), "f8")[:] = np.linspace(0, 1, POSITIONS)
        for start in range(0, n_samples, ROWS):
            rows = slice(start, min(start + ROWS, n_samples))
            for name, values in samples(rows.stop - rows.start, rng).items():
                file[name][rows] = values


def _write_zarr(path: Path, n_samples: int, rng: np.random.Generator) -> None:
    import xarray as xr

    for start in range(0, n_samples, ROWS):
        values = samples(min(ROWS, n_samples - start), rng)
        part = xr.Dataset(
            {
                "curve": (("sample", "position"), values["curve"]),
                "image": (("sample", "height", "width"), values["image"]),
            },
            {"position": np.linspace(0, 1, POSITIONS)},
        )
        encoding = {name: {"chunks": (CHUNK, *part[name].shape[1:])} for name in values}
        if start:
            part.drop_vars("position").to_zarr(path, append_dim="sample", zarr_format=2)
        else:
            part.to_zarr(path, encoding=encoding, zarr_format=2)


def samples(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Some samples, rounded so that they compress as measurements of 12 bits do."""
    group = rng.integers(0, GROUPS, n)
    curve = np.linspace(0, 1, POSITIONS) * (1 + group % 2)[:, None] + 0.1 * rng.standard_normal((n, POSITIONS))
    place = np.arange(SIDE) - np.where(group < 2, 4, 11)[:, None]
    spot = np.exp(-np.square(place) / 8)
    image = spot[:, :, None] * spot[:, None, :] + 0.1 * rng.standard_normal((n, SIDE, SIDE))
    return {
        name: np.round(values * 1024).astype(np.float32) / 1024 for name, values in (("curve", curve), ("image", image))
    }


def measure(command: Sequence[str], log: Path) -> Cost:
    """Run a command to its end.

    Raises:
        RuntimeError: It failed.
    """
    began = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # still there: its counters can be read
        read = _bytes_read(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        raise RuntimeError(f"{' '.join(command)}: exit status {process.returncode}; see {log}")
    return Cost(time.perf_counter() - began, usage.ru_maxrss * 1024, read)


def _bytes_read(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(text.split("rchar:")[1].split()[0])


def one(n_samples: int, storage: str, folder: Path, in_memory: str, with_prediction: bool) -> dict[str, Any]:
    """A file, a run, and if asked for a prediction; a record."""
    path = folder / f"{storage}-{n_samples}.{'zarr' if storage == 'zarr' else 'nc'}"
    if not path.exists():
        write_file(path, n_samples, storage)
    run = folder / f"run-{storage}-{n_samples}-{in_memory}"
    command = [sys.executable, "-m", "inference.svi", "--data", str(path), "--in_memory", in_memory, *SETTINGS]
    cost = measure([*command, "--output_dir", str(run), "--force"], run.with_suffix(".log"))
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    epochs = {record["phase"]: record["seconds"] for record in _records(run / "metrics.jsonl")}
    found = {
        "n_samples": n_samples,
        "storage": storage,
        "in_memory": in_memory,
        "status": summary["status"],
        "file_bytes": size_of(path),
        "peak_bytes": cost.peak,
        "seconds": cost.seconds,
        "epoch_seconds": epochs,
        "read_bytes": cost.read,
        "posterior_bytes": (run / "posterior.nc").stat().st_size,
    }
    return found | (_prediction(path, run, folder) if with_prediction else {})


def _prediction(path: Path, run: Path, folder: Path) -> dict[str, Any]:
    output = folder / "predictions.nc"
    command = [sys.executable, "-m", "inference.predict", str(run), "--data", str(path), "--output", str(output)]
    cost = measure([*command, "--draws", "2", "--in_memory", "no"], folder / "predict.log")
    size = output.stat().st_size
    output.unlink()
    return {"predict_peak_bytes": cost.peak, "predict_seconds": cost.seconds, "predict_bytes": size}


def size_of(path: Path) -> int:
    """Bytes of a file, or of a folder with all that is in it."""
    parts = path.rglob("*") if path.is_dir() else [path]
    return sum(part.stat().st_size for part in parts if part.is_file())


def _records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per run."""
    lines = [
        "| samples | storage | file MiB | peak MiB | per sample | passes | pretraining s | training s | all s "
        "| predict MiB | predict s |",
        "|" + "---|" * 11,
    ]
    before: Mapping[str, Any] | None = None
    for record in records:
        epochs = record["epoch_seconds"]
        cells = [
            str(record["n_samples"]),
            record["storage"] if record["in_memory"] == "no" else f"{record['storage']}, in memory",
            f"{record['file_bytes'] / 2**20:.0f}",
            f"{record['peak_bytes'] / 2**20:.0f}",
            _slope(before, record),
            _passes(before, record),
            *(f"{epochs.get(phase, float('nan')):.1f}" for phase in ("pretraining", "training")),
            f"{record['seconds']:.0f}",
            *(_given(record, "predict_peak_bytes", 2**20), _given(record, "predict_seconds", 1)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        before = record
    return "\n".join(lines)


def _slope(before: Mapping[str, Any] | None, record: Mapping[str, Any]) -> str:
    return f"{_ratio('peak_bytes', 'n_samples', before, record):.0f} B" if _continues(before, record) else "-"


def _passes(before: Mapping[str, Any] | None, record: Mapping[str, Any]) -> str:
    return f"{_ratio('read_bytes', 'file_bytes', before, record):.1f}" if _continues(before, record) else "-"


def _continues(before: Mapping[str, Any] | None, record: Mapping[str, Any]) -> bool:
    """Whether the row above differs in the number of samples alone."""
    return before is not None and all(before[key] == record[key] for key in ("storage", "in_memory"))


def _ratio(numerator: str, denominator: str, before: Mapping[str, Any] | None, record: Mapping[str, Any]) -> float:
    first = before or {}
    return float((record[numerator] - first[numerator]) / (record[denominator] - first[denominator]))


def _given(record: Mapping[str, Any], key: str, unit: int) -> str:
    return f"{record[key] / unit:.0f}" if key in record else "-"


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", default="10000,100000", help="numbers of samples, with commas between them")
    parser.add_argument("--storage", default="contiguous", help="contiguous, chunked, compressed, zarr; with commas")
    parser.add_argument("--in_memory", default="no", help="no, yes, or both with a comma")
    parser.add_argument("--predict", action="store_true", help="predict all samples afterwards, too")
    parser.add_argument(
        "--folder", type=Path, required=True, help="where files and runs go; files there are used again"
    )
    parser.add_argument("--json", type=Path, help="write the records to this file")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    records = []
    for storage in given.storage.split(","):
        for in_memory in given.in_memory.split(","):
            for n_samples in map(int, given.samples.split(",")):
                records.append(one(n_samples, storage, given.folder, in_memory, given.predict))
                print(table(records[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(records))
    if given.json is not None:
        given.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
