"""One progress bar over all steps of all starts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

from inference.results.run_folder import RunFolder
from inference.training.run import Run

__all__ = ["RestartProgress"]


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
