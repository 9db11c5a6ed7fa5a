"""From exceptions to exit statuses: bad input is one line and 2, a failed fit is 3, Ctrl-C is 130."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

__all__ = ["FAILED_FIT", "WRONG_INPUT", "run_command"]

WRONG_INPUT, FAILED_FIT, INTERRUPTED = 2, 3, 130


def run_command(name: str, command: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status.

    `ValueError`, `OSError` and `MemoryError` mean that the input or the machine was not up to it: one line on standard
    error that says what to do. Anything else is a bug and keeps its traceback.

    Args:
        name: Name of the command, as it starts the line.
        command: Takes the arguments, returns an exit status.
        argv: The arguments; default those of the process.
    """
    try:
        return command(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, MemoryError) as error:
        print(f"{name}: error: {_one_line(error)}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return text or "out of memory; use fewer samples, a smaller batch or smaller networks"
    return text or type(error).__name__
