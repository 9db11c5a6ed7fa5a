"""What torch and Pyro hold once per process: generators, default dtype, settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

__all__ = ["own_generators"]

_LOCK = threading.RLock()


@contextmanager
def own_generators(devices: Sequence[torch.device | int] | None = None) -> Iterator[None]:
    """Draw from torch's generators as if nobody else did; afterwards they are where they were, whatever happens.

    There is one set of generators per process. Threads therefore take turns: who comes here while another thread is
    inside waits for it. A thread that draws from torch without coming here disturbs who is inside.

    Args:
        devices: Devices other than the CPU whose generators are put back, too; None: all.
    """
    with _LOCK, torch.random.fork_rng(devices):
        yield
