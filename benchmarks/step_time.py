"""Time of a training step: the custom ELBO against stock Pyro and against closed forms in plain PyTorch.

`python benchmarks/step_time.py` prints, per batch size and number of cells, the median step of every arm and the
medians of within-round ratios; all arms run in one process, one thread, in rounds of alternating order. Before timing,
all arms are checked to have the same loss and the same gradients.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyro
import torch
from step_arms import ARMS, EVENT, Arm
from step_report import Timing, judge, print_agreement, print_head, print_timing, print_verdicts, write_json
from torch import Tensor

from causalpima.models.batch import Batch

N_SAMPLES = 4096
EXACT = 1e-10

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}


def make_batch(size: int) -> Batch:
    """Random images in [0, 1]."""
    images = torch.rand(size, *EVENT, generator=torch.Generator().manual_seed(1))
    return Batch({"image": images}, {"image": None}, torch.arange(size), N_SAMPLES)


def make_arms(n_nodes: int) -> dict[str, Arm]:
    """Fresh arms with the same initial values."""
    pyro.clear_param_store()
    return {name: arm(n_nodes) for name, arm in ARMS.items()}


def check_agreement(n_nodes: int, size: int) -> dict[str, dict[str, float]]:
    """Differences from ours in both precisions; ends the program where float64 differs by more than rounding."""
    differences = {}
    for dtype in (torch.float64, torch.float32):
        torch.set_default_dtype(dtype)
        differences[str(dtype)] = largest_differences(make_arms(n_nodes), make_batch(size))
    if max(differences["torch.float64"].values()) > EXACT:
        raise SystemExit(f"the arms disagree in float64, nothing was timed: {differences['torch.float64']}")
    return differences


def largest_differences(arms: dict[str, Arm], batch: Batch) -> dict[str, float]:
    """Per arm, largest relative difference from ours in loss and in any parameter's gradient."""
    results = {name: _loss_and_gradients(arm, batch) for name, arm in arms.items() if arm.checked}
    ours = results.pop("ours")
    return {name: max(map(_relative, values, ours)) for name, values in results.items()}


def _loss_and_gradients(arm: Arm, batch: Batch) -> list[Tensor]:
    torch.manual_seed(2)
    with pyro.settings.context(module_local_params=arm.parameters_in_modules):
        loss = torch.tensor(arm.backward(batch))
    return [loss, *(torch.zeros(1) if p.grad is None else p.grad.clone() for p in arm.parameters())]


def _relative(value: Tensor, reference: Tensor) -> float:
    return float((value - reference).abs().max() / reference.abs().max().clamp(min=torch.finfo(reference.dtype).tiny))


def measure(size: int, n_nodes: int, rounds: int, clock: Clock) -> Timing:
    """All arms at one batch size and number of cells, interleaved over rounds of alternating order."""
    batch, arms = make_batch(size), make_arms(n_nodes)
    order, steps = list(arms.items()), max(3, 2048 // size)
    time_round(order, batch, 3, clock)
    gc.collect()
    results = [time_round(order[:: 1 if k % 2 == 0 else -1], batch, steps, clock) for k in range(rounds)]
    milliseconds = {name: float(np.median([result[name] for result in results])) for name in arms}
    ratio = {name: _quartiles([result["ours"] / result[name] for result in results]) for name in arms if name != "ours"}
    return Timing(size, 2**n_nodes, milliseconds, ratio)


def time_round(arms: Sequence[tuple[str, Arm]], batch: Batch, steps: int, clock: Clock) -> dict[str, float]:
    """Median step of every arm in one round, milliseconds, after one step that fills the caches."""
    medians = {}
    for name, arm in arms:
        with pyro.settings.context(module_local_params=arm.parameters_in_modules):
            arm.step(batch)
            medians[name] = 1e3 * float(np.median([_time(arm, batch, clock) for _ in range(steps)]))
    return medians


def _time(arm: Arm, batch: Batch, clock: Clock) -> float:
    begin = clock()
    arm.step(batch)
    return clock() - begin


def _quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return float(low), float(middle), float(high)


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Time of a training step; see benchmarks/README.md.")
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--cells", type=int, nargs="+", default=[8, 64, 512], help="powers of two")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of this process, for a busy machine")
    parser.add_argument("--quick", action="store_true", help="8 cells and 5 rounds")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.quick:
        args.cells, args.rounds = [8], 5
    return args


def main() -> None:
    """Check, measure, print."""
    args = parse_args()
    torch.set_num_threads(1)
    pyro.enable_validation(False)
    print_head(args.rounds, args.clock)
    timings, agreement = [], {}
    for cells in args.cells:
        n_nodes = cells.bit_length() - 1
        agreement[cells] = check_agreement(n_nodes, min(args.batches))
        print_agreement(cells, agreement[cells])
        for size in args.batches:
            timings.append(measure(size, n_nodes, args.rounds, CLOCKS[args.clock]))
            print_timing(timings[-1])
    print_verdicts(judge(timings))
    if args.json:
        write_json(args.json, timings, agreement)


if __name__ == "__main__":
    main()
