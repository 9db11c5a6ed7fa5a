"""Time of several starts trained as one computation against one after the other.

`python benchmarks/restarts_time.py` fits the circles with the default networks. Both arms start from the same weights
and go through the same epochs in turns, in one process: each round is an epoch of all starts one after the other and an
epoch of all of them together, in alternating order. Ratios are taken within rounds. Validation, mixture updates and
graph are part of an epoch; the cluster read-out, the same work in both arms, is timed apart.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from causalpima.inference.command_line.svi_parser import parse
from causalpima.inference.run import Run
from causalpima.inference.starts import train_batched
from causalpima.inference.store.files import write_json

__all__ = ["Round", "measure", "table"]

TARGET = 0.75
PHASES = ("pretraining", "training")
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass(frozen=True)
class Round:
    """One epoch of both arms.

    Attributes:
        batch: Samples per step.
        phase: What the epoch was.
        has_read_out: Whether the clusters were read out in it.
        sequential: Seconds of all starts one after the other.
        batched: Seconds of all starts together.
    """

    batch: int
    phase: str
    has_read_out: bool
    sequential: float
    batched: float

    @property
    def ratio(self) -> float:
        """Of the batched arm to the sequential one."""
        return self.batched / self.sequential


def measure(runs: Sequence[Sequence[Run]], clock: Callable[[], float]) -> list[Round]:
    """Train both arms to the end, epoch by epoch.

    Args:
        runs: Two times the same starts.
        clock: What tells the time.
    """
    rounds = []
    config = runs[0][0].config
    for epoch in range(1, config.total_epochs + 1):
        arms = [lambda e=epoch: _one_by_one(runs[0], e), lambda e=epoch: train_batched(runs[1], until=e)]
        seconds = {k: _time(arms[k], clock) for k in ((0, 1) if epoch % 2 else (1, 0))}
        phase = runs[0][0].state.history[-1]["phase"]
        has_read_out = epoch == config.pretraining_epochs + 1
        rounds.append(Round(config.training.batch_size, phase, has_read_out, seconds[0], seconds[1]))
    return rounds


def _one_by_one(runs: Sequence[Run], until: int) -> None:
    for run in runs:
        run.train(until)


def _time(arm: Callable[[], None], clock: Callable[[], float]) -> float:
    begin = clock()
    arm()
    return clock() - begin


def table(rounds: Sequence[Round], config_epochs: tuple[int, int]) -> list[str]:
    """Rows of a Markdown table per batch size, and the verdict.

    Args:
        rounds: What was measured.
        config_epochs: Epochs of pretraining and of joint training of a whole default fit.
    """
    verdicts: list[str] = []
    lines = ["| batch | pretraining | joint training | a fit of both | with the read-out |", "|---|---|---|---|---|"]
    for batch in sorted({r.batch for r in rounds}):
        of_batch = [r for r in rounds if r.batch == batch]
        phases = [[r for r in of_batch if r.phase == phase and not r.has_read_out] for phase in PHASES]
        cells = [_quartiles([r.ratio for r in phase]) for phase in phases]
        whole = _whole(phases, config_epochs, [])
        read_out = [r for r in of_batch if r.has_read_out]
        with_read_out = _whole(phases, (config_epochs[0], config_epochs[1] - len(read_out)), read_out)
        lines.append(f"| {batch} | {' | '.join(cells)} | {whole:.2f} | {with_read_out:.2f} |")
        if batch == 128:
            lines.append(
                f"\nat batch 128: {whole:.2f} of sequential, {'met' if whole <= TARGET else 'missed'}: {TARGET}"
            )
    return lines + verdicts


def _quartiles(values: Sequence[float]) -> str:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def _whole(phases: Sequence[Sequence[Round]], epochs: Sequence[int], others: Sequence[Round]) -> float:
    """Ratio of the sums over the epochs of a whole fit, each epoch at the median of its phase."""
    sums = [
        sum(n * float(np.median([getattr(r, arm) for r in phase])) for n, phase in zip(epochs, phases, strict=True))
        + sum(getattr(r, arm) for r in others)
        for arm in ("sequential", "batched")
    ]
    return sums[1] / sums[0]


def _runs(batch: int, n_starts: int, epochs: Sequence[int]) -> list[Run]:
    flags = ["--training.batch_size", batch, "--pretraining.epochs", epochs[0], "--training.epochs", epochs[1]]
    arguments = parse(["--dataset", "circles", *map(str, flags), "--training.patience", "0"])
    data = arguments.make_data()
    return [Run(data, replace(arguments.config, restart=k)) for k in range(n_starts)]


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Time of batched starts; see benchmarks/README.md.")
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 128, 256])
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--epochs", type=int, nargs=2, default=(5, 5), help="of pretraining and of joint training")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: time of this process, for a busy machine")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rounds: list[Round] = []
    for batch in options.batches:
        arms = [_runs(batch, options.starts, options.epochs) for _ in range(2)]
        rounds += measure(arms, CLOCKS[options.clock])
    default = parse(["--dataset", "circles"]).config
    lines = table(rounds, (default.pretraining_epochs, default.training.epochs))
    print(f"{options.starts} starts, batched over sequential ({options.clock} time)\n")
    print("\n".join(lines))
    if options.json:
        write_json(options.json, {"rounds": [asdict(r) for r in rounds], "table": lines})


if __name__ == "__main__":
    main()
