"""What `step_time.py` prints and writes: the machine, a table, and the targets met or missed."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyro
import torch
from step_arms import ARMS

__all__ = ["Timing", "judge", "print_agreement", "print_head", "print_timing", "print_verdicts", "write_json"]

Agreement = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Target:
    """Ours takes at most `limit` times the other arm, at these batch sizes and 8 cells."""

    other: str
    limit: float
    batches: tuple[int, ...]


TARGETS = (
    Target("hand-same", 1.15, (64,)),
    Target("hand-same", 1.10, (256, 1024)),
    Target("hand-naive", 0.95, (64, 256, 1024)),
    Target("stock", 0.55, (64, 256, 1024)),
    Target("stock-fused", 0.70, (64, 256, 1024)),
)


@dataclass(frozen=True)
class Timing:
    """One block of the table.

    Attributes:
        batch: Batch size.
        cells: Number of cells.
        milliseconds: Per arm, median step over all rounds.
        ratio: Per other arm, quartiles of ours / other within rounds: 25 %, median, 75 %.
    """

    batch: int
    cells: int
    milliseconds: dict[str, float]
    ratio: dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Verdict:
    """A target at one batch size, the median ratio that was measured, and whether it was met."""

    other: str
    batch: int
    limit: float
    ratio: float
    met: bool


def judge(timings: Sequence[Timing]) -> list[Verdict]:
    """Every target that was measured."""
    verdicts = []
    for target in TARGETS:
        for timing in timings:
            if timing.cells == 8 and timing.batch in target.batches:
                ratio = timing.ratio[target.other][1]
                verdicts.append(Verdict(target.other, timing.batch, target.limit, ratio, ratio <= target.limit))
    return verdicts


def print_head(rounds: int, clock: str) -> None:
    """Machine, and optimiser, allocator and threads of every arm."""
    print(f"{machine()}; Python {platform.python_version()}, torch {torch.__version__}, pyro {pyro.__version__}")
    print(f"{rounds} rounds, {clock} clock, float32, Pyro's validation off, mixture and decoder variance fixed")
    for name, arm in ARMS.items():
        print(f"  {name:<12} optimiser {arm.optimiser}; allocator {allocator()}; threads {torch.get_num_threads()}")


def machine() -> str:
    """Processor, number of cores and load."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def allocator() -> str:
    """The allocator's settings in the environment; all arms share them."""
    names = [name for name in os.environ if name.startswith(("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD"))]
    return ", ".join(f"{name}={os.environ[name]}" for name in names) or "default"


def print_agreement(cells: int, agreement: Agreement) -> None:
    """Largest relative difference of every arm from ours."""
    print(f"\n{cells} cells: loss and every gradient against ours, largest relative difference")
    for dtype, differences in agreement.items():
        print(f"  {dtype}  " + "  ".join(f"{name} {value:.0e}" for name, value in differences.items()))


def print_timing(timing: Timing) -> None:
    """Steps in milliseconds, and ratios with their quartiles."""
    print(f"\nbatch {timing.batch}, {timing.cells} cells")
    for name, value in timing.milliseconds.items():
        low, middle, high = timing.ratio.get(name, (1.0, 1.0, 1.0))
        ratio = f"   ours / it = {middle:.2f}  ({low:.2f} to {high:.2f})" if name in timing.ratio else ""
        print(f"  {name:<12} {value:8.2f} ms{ratio}")


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Every target, met or missed."""
    print("\nTargets: ours / other at 8 cells")
    for v in verdicts:
        print(f"  {v.other:<12} batch {v.batch:<5} {v.ratio:.2f} <= {v.limit:.2f}  {'met' if v.met else 'MISSED'}")


def write_json(path: Path, timings: Sequence[Timing], agreement: dict[int, Agreement]) -> None:
    """The same for machines."""
    record = {
        "machine": machine(),
        "allocator": allocator(),
        "threads": torch.get_num_threads(),
        "optimisers": {name: arm.optimiser for name, arm in ARMS.items()},
        "timings": [asdict(timing) for timing in timings],
        "agreement": agreement,
        "targets": [asdict(verdict) for verdict in judge(timings)],
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
