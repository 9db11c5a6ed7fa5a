"""Runs of a Pyro program with parallel enumeration, recorded by a single handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyro import poutine
from pyro.poutine.enum_messenger import EnumMessenger
from pyro.poutine.replay_messenger import ReplayMessenger
from pyro.poutine.trace_messenger import TraceMessenger

__all__ = ["record"]


def record(
    program: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first_available_dim: int | None = None,
    replayed: poutine.Trace | None = None,
) -> poutine.Trace:
    """Trace of one run, its sites enumerated in parallel where they ask for it.

    Args:
        program: Model or guide.
        args: Its arguments.
        kwargs: Its keyword arguments.
        first_available_dim: Leftmost dimension that no plate uses, minus one; None goes on after the last run.
        replayed: Trace whose values are used for sites of the same name.
    """
    recorded = _Recorder(first_available_dim, replayed or poutine.Trace())(program)
    recorded(*args, **kwargs)
    return recorded.trace


class _Recorder(EnumMessenger, TraceMessenger):
    """Enumerates, replays and traces: what Pyro does with a handler each, in the same order."""

    def __init__(self, first_available_dim: int | None, replayed: poutine.Trace) -> None:
        super().__init__(first_available_dim)
        self._replay = ReplayMessenger(replayed)

    def _pyro_sample(self, msg: Any) -> None:
        super()._pyro_sample(msg)
        self._replay._pyro_sample(msg)

    def _pyro_post_sample(self, msg: Any) -> None:
        EnumMessenger._pyro_post_sample(self, msg)
        TraceMessenger._pyro_post_sample(self, msg)
