"""Several starts of one run: trained side by side, compared, and the best one made the result."""

from __future__ import annotations

import dataclasses
from time import perf_counter

from inference.data.tensors import fingerprint
from inference.results.fit_result import FitResult
from inference.results.restart_comparison import Comparison
from inference.results.run_folder import RunFolder
from inference.training.own_code import source_hashes
from inference.training.restarts.batch import run_batched
from inference.training.restarts.compared import compared
from inference.training.restarts.plan import RestartPlan
from inference.training.restarts.processes import run_in_processes
from inference.training.restarts.progress import RestartProgress
from inference.training.restarts.start import Starts, read, run_start
from inference.training.run import Run

__all__ = ["RestartedRun"]


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
