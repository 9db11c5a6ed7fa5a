"""Starts side by side, each in a process of its own.

The processes are started anew and not forked, so that threads and devices of this one do no harm, and they do not
import the caller's script, so that it needs no guard.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, cast

import torch

from causalpima.inference.starts import Starts, run_start
from causalpima.inference.store.files import OutputError
from causalpima.inference.training.checkpoint import CheckpointError

__all__ = [
    "Share",
    "main",
    "run_in_processes",
]


# The other end of `processes`: a process that runs its share of the starts and says how far they are.
#
# The work comes on standard input, which stays open: where it closes, the process that asked is gone, and this one
# ends,
# too. What happened goes to standard output, an event in JSON per line; all else that is printed goes to standard
# error.


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


Heard = Callable[[Mapping[str, Any]], object]

_COMMAND = "import sys; from causalpima.inference.start_processes import main; sys.exit(main())"
_ERRORS: Mapping[str, type[Exception]] = {
    "CheckpointError": CheckpointError,
    "MemoryError": MemoryError,
    "OutputError": OutputError,
}
_MOST_BYTES = 2**16


def run_in_processes(
    starts: Starts, numbers: Sequence[int], n_jobs: int, heard: Heard, until: int | None = None, threads: int = 1
) -> None:
    """Run starts in several processes, dealt out in turn; returns when all have ended.

    The starts leave what they found in their folders. Whatever ends this call early ends the processes; then all
    epochs that they finished are in their checkpoints.

    Args:
        starts: Data, configuration and folder; sent to every process.
        numbers: Which starts.
        n_jobs: Number of processes.
        heard: Called with events: `steps` taken, a `warning`, or the number of a start that `ended`.
        until: Number of finished epochs at which to stop; None: all that are planned.
        threads: Threads of torch in each process.

    Raises:
        ValueError: As a start raises it; or objects that can't be sent, or a process that was killed.
        OutputError: The disk is full.
        MemoryError: There is too little for so many processes.
    """
    shares = [Share(starts, numbers[first::n_jobs], until, threads) for first in range(n_jobs)]
    _check_can_be_sent(starts)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes += [_start() for _ in shares]
        for process, share in zip(processes, shares, strict=True):
            _send(process, share)
        for event in _events(processes):
            _check_event(event)
            heard(event)
        for process in processes:
            _check_end(process.wait())
    finally:
        for process in processes:
            _end(process)


def _check_can_be_sent(starts: Starts) -> None:
    """Objects of the caller's script, which the other processes do not import, can't be."""
    for name, objects in (("decoders", starts.decoders), ("components", starts.components)):
        try:
            content = pickle.dumps(objects)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise _not_sent(name, str(error)) from error
        if b"__main__" in content:
            raise _not_sent(name, "they are of the script itself")


def _not_sent(name: str, reason: str) -> ValueError:
    return ValueError(
        f"{name}: expected objects that can be sent to other processes, got others ({reason}); define their classes "
        "in a module, or run the starts one after the other with jobs=1"
    )


def _start() -> subprocess.Popen[bytes]:
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


def _send(process: subprocess.Popen[bytes], share: Share) -> None:
    pipe = cast(IO[bytes], process.stdin)
    with suppress(BrokenPipeError):  # it died, and its exit status says so
        pickle.dump(share, pipe, protocol=pickle.HIGHEST_PROTOCOL)
        pipe.flush()


def _events(processes: Sequence[subprocess.Popen[bytes]]) -> Iterator[dict[str, Any]]:
    """Events of all processes as they come, until the last one has closed its end."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            selector.register(cast(IO[bytes], process.stdout), selectors.EVENT_READ, process)
        rest = dict.fromkeys(processes, b"")
        while selector.get_map():
            for key, _ in selector.select():
                content = os.read(key.fd, _MOST_BYTES)
                if not content:
                    selector.unregister(key.fileobj)
                *lines, rest[key.data] = (rest[key.data] + content).split(b"\n")
                yield from map(json.loads, lines)


def _check_event(event: Mapping[str, Any]) -> None:
    if "error" in event:
        raise _ERRORS.get(event["error"], ValueError)(event["message"])


def _check_end(status: int) -> None:
    if status < 0:
        raise ValueError(
            f"restarts: a process of theirs was killed by signal {-status}, perhaps for want of memory; go on with "
            "--resume, with fewer --jobs"
        )
    if status:
        raise RuntimeError(f"restarts: a process of theirs failed with status {status}; it says above why")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(BrokenPipeError):  # what was not sent to a dead process
            cast(IO[bytes], pipe).close()
