"""Several starts of one run: trained side by side, compared, and the best one made the result."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from types import TracebackType
from typing import Any, Literal

from tqdm.auto import tqdm

from causalpima.inference.data.tensors import fingerprint
from causalpima.inference.findings.restarts import Comparison, chains, restart_summary
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.start_processes import run_in_processes
from causalpima.inference.starts import Starts, found_start, read, run_batched, run_start
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.user_code import source_hashes

__all__ = [
    "MOST_RESTARTS",
    "RestartMode",
    "RestartPlan",
    "RestartProgress",
    "RestartedRun",
    "compared",
    "compared_again",
    "usable_cores",
]


# How many starts there are, and how they are run.


MOST_RESTARTS = 1000

RestartMode = Literal["auto", "processes", "batched"]


@dataclass(frozen=True)
class RestartPlan:
    """Several starts of a configuration.

    Attributes:
        n: Number of starts, numbered from 0.
        jobs: How many run at once, each in a process of its own; None: as many as there are cores, 1: one after the
            other in this process.
        threads: Threads of torch in each process.
        mode: Run them in `processes`, or `batched` as one computation; `auto`: see `resolved`.
    """

    n: int
    jobs: int | None = None
    threads: int = 1
    mode: RestartMode = "auto"

    @property
    def n_jobs(self) -> int:
        """How many starts run at once."""
        most = self.jobs if self.jobs is not None else max(1, usable_cores() // self.threads)
        return min(self.n, most)

    def resolved(self, first: Run) -> RestartPlan:
        """The same with a mode that is not `auto`.

        That is `batched` where it can be computed and processes would have nothing to gain: on another device than the
        CPU, which they would share, and where only one would run at once. Else it is `processes`.

        Args:
            first: The first start, as far as it was prepared.

        Raises:
            ValueError: `batched` is asked for and can't be computed.
        """
        reason = batched_support(first.config, first.modalities, first.decoders, first.components)
        if self.mode == "batched" and reason is not None:
            raise ValueError(f"restart_mode: expected processes, since {reason}, got batched; leave it out")
        if self.mode != "auto":
            return self
        gains_nothing = self.n_jobs == 1 or first.device.type != "cpu"
        return replace(self, mode="batched" if reason is None and gains_nothing else "processes")

    def configs(self, config: FitConfig) -> list[FitConfig]:
        """The configuration of every start."""
        return [replace(config, restart=number) for number in range(self.n)]

    def check(self, config: FitConfig) -> None:
        """Refuse what can't be planned.

        Raises:
            ValueError: A number out of range, or a configuration that is itself one of several starts.
        """
        if not 1 <= self.n <= MOST_RESTARTS:
            raise ValueError(f"restarts: expected a whole number from 1 to {MOST_RESTARTS}, got {self.n}")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs: expected a whole number >= 1, got {self.jobs}")
        if self.n > 1 and config.restart:
            raise ValueError(
                f"restart: expected 0 with restarts = {self.n}, which are numbered from 0, got {config.restart}; "
                "leave it out"
            )


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# A result beside the other starts of its run.


def compared(result: FitResult, comparison: Comparison, mode: str) -> FitResult:
    """The result with what the comparison says, in its summary and its arrays.

    Args:
        result: The kept start.
        comparison: All starts.
        mode: How they were run.
    """
    arrays = None if result.arrays is None else chains(comparison, result.arrays)
    entry = restart_summary(comparison, arrays, mode, list(result.summary["nodes"]))
    return dataclasses.replace(
        result,
        summary={**result.summary, "restarts": entry},
        arrays=None if result.arrays is None else dataclasses.replace(result.arrays, restarts=arrays),
    )


def compared_again(result: FitResult, folder: RunFolder) -> FitResult:
    """The same of a result whose cells got other numbers or names since; as it is where the run had a single start.

    Where the starts are no longer there, what depends on how cells are numbered is left out.

    Args:
        result: The kept start.
        folder: The folder of the run, with its `summary.json` and its starts.

    Raises:
        ValueError: What a start left can't be read.
    """
    before = folder.read_summary().get("restarts")
    if not before:
        return result
    folders = [RunFolder(folder.restarts / str(number)) for number in range(before["n"])]
    if not all(start.is_complete for start in folders):
        entry = {**before, "agreement": None, "edge_frequency": None}
        return dataclasses.replace(result, summary={**result.summary, "restarts": entry})
    starts = [found_start(start, number) for number, start in enumerate(folders)]
    return compared(result, Comparison.of(starts), before["mode"])


# One progress bar over all steps of all starts.


class RestartProgress:
    """Counts steps of all starts together, and starts that ended.

    Args:
        first: A start, whose number of steps is that of all.
        n: Number of starts.
        until: Number of finished epochs at which each stops; None: all that are planned.
        shown: Show the bar, on standard error.
    """

    def __init__(self, first: Run, n: int, until: int | None, shown: bool) -> None:
        planned = first.config.total_epochs
        self._epochs = planned if until is None else min(until, planned)
        self._steps = math.ceil(first.task.training.n_samples / first.config.training.batch_size)
        self._n, self._n_ended = n, 0
        total = n * self._epochs * self._steps
        self._bar = tqdm(total=total, unit="step", disable=not shown, leave=False, dynamic_ncols=True)
        self._describe()

    def found(self, folder: RunFolder) -> None:
        """Count what an earlier session did of a start."""
        ended = folder.is_complete
        lines = folder.metrics.read_bytes().count(b"\n") if folder.metrics.is_file() else 0
        self.stepped(self._steps * (self._epochs if ended else min(lines, self._epochs)))
        if ended:
            self.ended()

    def stepped(self, steps: int = 1) -> None:
        """Steps were taken, of whichever start."""
        self._bar.update(steps)

    def ended(self) -> None:
        """A start ended, or went as far as it should."""
        self._n_ended += 1
        self._describe()

    def warned(self, text: str) -> None:
        """Say something above the bar."""
        tqdm.write(f"warning: {text}", file=self._bar.fp)

    def heard(self, event: Mapping[str, Any]) -> None:
        """Take in what another process says."""
        if "warning" in event:
            self.warned(event["warning"])
        self.stepped(event.get("steps", 0))
        if "ended" in event:
            self.ended()

    def _describe(self) -> None:
        self._bar.set_description(f"{self._n} starts, {self._n_ended} done")

    def __enter__(self) -> RestartProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()


class RestartedRun:
    """Several starts of one configuration on the same samples and the same split.

    Every start has a folder of its own, `restarts/0`, `restarts/1`, ..., with its checkpoints. A start that ended is
    not repeated, and one that was stopped goes on from its newest checkpoint.

    Args:
        first: The first start, as far as it was prepared; it is not trained.
        plan: How many starts there are, and how they are run.
        folder: The folder of the run.

    Raises:
        ValueError: What is planned can't be.
    """

    def __init__(self, first: Run, plan: RestartPlan, folder: RunFolder) -> None:
        plan.check(first.config)
        self.first, self.plan, self.folder = first, plan.resolved(first), folder
        self.starts = Starts(first.data, first.config, folder.path, str(first.device), first.decoders, first.components)
        self._began, self._is_resumed = perf_counter(), folder.restarts.exists()

    @property
    def is_finished(self) -> bool:
        """Whether every start ended."""
        return not self._left()

    def _left(self) -> list[int]:
        return [number for number in range(self.plan.n) if not self.starts.folder(number).is_complete]

    def train(self, until: int | None = None, progress: bool = False) -> None:
        """Run every start that has not ended, with a checkpoint after every epoch.

        Args:
            until: Number of finished epochs (pretraining included) at which each stops; None: all that are planned.
            progress: Show one progress bar on standard error.

        Raises:
            ValueError: See `run_start` and `run_in_processes`.
        """
        numbers = self._left()
        with RestartProgress(self.first, self.plan.n, until, progress) as shown:
            for number in range(self.plan.n):
                shown.found(self.starts.folder(number))
            self._train(numbers, until, shown)

    def _train(self, numbers: list[int], until: int | None, shown: RestartProgress) -> None:
        n_jobs = min(self.plan.n_jobs, len(numbers))
        if not numbers:
            return
        if self.plan.mode == "batched":
            run_batched(self.starts, numbers, until, shown.stepped, shown.warned)
        elif n_jobs > 1:
            run_in_processes(self.starts, numbers, n_jobs, shown.heard, until, self.plan.threads)
        else:
            self._one_after_the_other(numbers, until, shown)

    def _one_after_the_other(self, numbers: list[int], until: int | None, shown: RestartProgress) -> None:
        for number in numbers:
            run_start(self.starts, number, until, shown.stepped, shown.warned)
            shown.ended()

    def finish(self) -> FitResult:
        """Compare the starts; the best one, finished once more from its last checkpoint, is the result.

        Raises:
            ValueError: What a start left can't be read, or is of another configuration or other data.
        """
        data, own = fingerprint(self.first.data), source_hashes(self.first.config.to_dict())
        configs = self.plan.configs(self.first.config)
        found = [read(self.starts, number, config.fingerprint(data, own)) for number, config in enumerate(configs)]
        comparison = Comparison.of(found)
        run, _ = self.starts.go_on(comparison.chosen)
        run.train()  # one that diverged does so again
        return self._timed(compared(run.finish(), comparison, self.plan.mode))

    def _timed(self, result: FitResult) -> FitResult:
        """With the wall time of all starts and of finishing, which that of one start is not; None if resumed."""
        wall = None if self._is_resumed else round(perf_counter() - self._began, 3)
        seconds = {**result.summary["seconds"], "all_starts": wall}
        return dataclasses.replace(result, summary={**result.summary, "seconds": seconds})
