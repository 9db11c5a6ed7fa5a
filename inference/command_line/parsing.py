"""The parser of a command with a few flags, and its errors in plain words."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

from jsonargparse import ArgumentError, ArgumentParser, _loaders_dumpers, set_loader

from causalpima.inference.store.files import FORMAT_KEY, is_out_of_memory
from causalpima.inference.store.yaml_text import NumberLoader, YamlError, parse_yaml
from causalpima.inference.training.state import DivergedError
from causalpima.models.user_code import on_word_of_files

__all__ = [
    "ALLOW_CODE",
    "FAILED_FIT",
    "PARSER_MODE",
    "UNPARSABLE",
    "WRONG_INPUT",
    "add_code_flag",
    "plain_values",
    "run_command",
]


ALLOW_CODE = "--allow_code"
PARSER_MODE = "plain_yaml"
"""How parsers read values and files: as `inference.store.input_files` does."""

UNPARSABLE = (ArgumentError, ArgumentTypeError, TypeError, AttributeError)
"""What jsonargparse raises, of its own and, for groups that are null or a list, of Python."""


def add_code_flag(parser: ArgumentParser) -> None:
    """`--allow_code`, of commands that read the folder of a run; `run_command` sees to it."""
    text = "Run the code that the run names as module:Class (components of one's own): of makers you trust."
    parser.add_argument(ALLOW_CODE, action="store_true", help=text)


def _load(text: str) -> Any:
    """A value or the content of a configuration file; `a:` and `{a, b}` are text, as the parser has it."""
    value = parse_yaml(text)
    if isinstance(value, dict) and value and all(entry is None for entry in value.values()):
        names = {name.strip() for name in text.strip().strip("{}").split(",")}
        return text if names == set(value) or text.strip() == f"{next(iter(value))}:" else value
    return {name: entry for name, entry in value.items() if name != FORMAT_KEY} if isinstance(value, dict) else value


set_loader(PARSER_MODE, _load, (YamlError,))


@contextmanager
def plain_values() -> Iterator[None]:
    """Meanwhile the parser reads single numbers and booleans by the same rules, for which it asks no loader."""
    home: Any = _loaders_dumpers
    before = home.yaml_default_loader
    home.yaml_default_loader = NumberLoader
    try:
        yield
    finally:
        home.yaml_default_loader = before


# From exceptions to exit statuses: bad input is one line and 2, a failed fit is 3, Ctrl-C is 130.


WRONG_INPUT, FAILED_FIT = 2, 3
_KILLED_BY = 128


def run_command(
    name: str,
    command: Callable[[Sequence[str]], int],
    argv: Sequence[str] | None = None,
    reads_run: bool = False,
) -> int:
    """Run a command; returns its exit status.

    `ValueError`, `OSError` and running out of memory mean that the input or the machine was not up to it: one line on
    standard error that says what to do, and 2. Ctrl-C is 130 and SIGTERM 143; what the exception notes is printed. A
    reader of standard output that went away (`| head`) is 141, as of other programs.
    Anything else is a bug and keeps its traceback.

    Args:
        name: Name of the command, as it starts the line.
        command: Takes the arguments, returns an exit status.
        argv: The arguments; default those of the process.
        reads_run: Whether it reads the folder of a run, whose word is not enough to run code (`--allow_code`).
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        with _terminated_like_interrupted(), on_word_of_files(ALLOW_CODE in words) if reads_run else nullcontext():
            return command(words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(_KILLED_BY + signal.SIGPIPE)
    except DivergedError as error:
        print(f"{name}: the fit diverged: {error}", file=sys.stderr)
        return FAILED_FIT
    except (ValueError, OSError, MemoryError) as error:
        return _refuse(name, _one_line(error))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return _refuse(name, _one_line(MemoryError()))
    except KeyboardInterrupt as interrupt:
        number = interrupt.args[0] if interrupt.args else signal.SIGINT
        print("; ".join([f"{name}: interrupted", *getattr(interrupt, "__notes__", ())]), file=sys.stderr)
        return int(_KILLED_BY + number)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM raises `KeyboardInterrupt`, too: batch systems send it before they kill."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


def _refuse(name: str, message: str) -> int:
    print(f"{name}: error: {message}", file=sys.stderr)
    return WRONG_INPUT


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"out of memory; use fewer samples, a smaller batch or smaller networks{f' ({text})' if text else ''}"
    return text or type(error).__name__
