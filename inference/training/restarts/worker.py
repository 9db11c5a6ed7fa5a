"""The other end of `processes`: a process that runs its share of the starts and says how far they are.

The work comes on standard input, which stays open: where it closes, the process that asked is gone, and this one ends,
too. What happened goes to standard output, an event in JSON per line; all else that is printed goes to standard error.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import torch

from inference.training.restarts.start import Starts, run_start

__all__ = ["Share", "main"]

_EVERY = 0.1
_FAILED = 1


@dataclass(frozen=True)
class Share:
    """What one process does.

    Attributes:
        starts: Data, configuration and folder.
        numbers: Which starts.
        until: Number of finished epochs at which to stop; None: all that are planned.
        threads: Threads of torch.
    """

    starts: Starts
    numbers: Sequence[int]
    until: int | None
    threads: int


class _Events:
    """Events for the process that asked; steps are put together for a tenth of a second."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._steps, self._last = file, 0, 0.0

    def say(self, **event: Any) -> None:
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()

    def stepped(self) -> None:
        self._steps += 1
        if time.monotonic() - self._last > _EVERY:
            self.flush()

    def flush(self) -> None:
        self.say(steps=self._steps)
        self._steps, self._last = 0, time.monotonic()


def main() -> int:
    """Run the starts; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both: the process that asked decides
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as file:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        return _run(_Events(file))


def _run(events: _Events) -> int:
    share: Share = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    torch.set_num_threads(share.threads)
    try:
        for number in share.numbers:
            run_start(share.starts, number, share.until, events.stepped, lambda text: events.say(warning=text))
            events.flush()
            events.say(ended=number)
    except (ValueError, OSError, MemoryError) as error:
        events.say(error=type(error).__name__, message=str(error))
        return _FAILED
    return 0


def _end_with_the_other() -> None:
    os.read(sys.stdin.fileno(), 1)  # not by way of a buffer, whose lock would outlive the interpreter
    os._exit(_FAILED)
