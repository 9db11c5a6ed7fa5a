"""How many starts there are, and how they are run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Literal

from inference.training.batched.support import batched_support
from inference.training.config import FitConfig
from inference.training.run import Run

__all__ = ["MOST_RESTARTS", "RestartMode", "RestartPlan", "usable_cores"]

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
